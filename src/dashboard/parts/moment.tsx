import { agoText, durationText } from '../duration.ts';

interface TimeProps {
  readonly at: Date | null;
  readonly nowMs: number;
}

/** How long ago, or in how long; the whole time on hover. The script lets it tick. */
export function Ago({ at, nowMs }: TimeProps) {
  if (at === null) return <span class="muted">–</span>;
  const iso = at.toISOString();
  return (
    <time datetime={iso} title={iso} data-tick="ago">
      {agoText(at, nowMs)}
    </time>
  );
}

/** How long something has gone on since a time, or ten times as long as it still goes on. */
export function Since({ at, nowMs }: TimeProps) {
  if (at === null) return <span class="muted">–</span>;
  const iso = at.toISOString();
  return (
    <time datetime={iso} title={`since ${iso}`} data-tick="since">
      {durationText(nowMs - at.getTime())}
    </time>
  );
}

/** A time as the database has it. */
export function At({ at }: { readonly at: Date }) {
  const iso = at.toISOString();
  return (
    <time datetime={iso} title={iso}>
      {`${iso.slice(0, 10)} ${iso.slice(11, 19)}`}
    </time>
  );
}
