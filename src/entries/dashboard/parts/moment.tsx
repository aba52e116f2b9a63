import { agoText, durationText } from '../duration.ts';
import { h } from '../html.ts';

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

/** How long something has gone on since a time; `undefined` for a time that is not known. */
export function Since({ at, nowMs }: { readonly at: Date | null | undefined; readonly nowMs: number }) {
  if (at === undefined) return <span class="muted">?</span>;
  if (at === null) return <span class="muted">–</span>;
  const iso = at.toISOString();
  return (
    <time datetime={iso} title={`since ${iso}`} data-tick="since">
      {durationText(nowMs - at.getTime())}
    </time>
  );
}

/** A time in UTC, which `Zone` says; the script shows it by the browser's clock. */
export function At({ at }: { readonly at: Date }) {
  const iso = at.toISOString();
  return (
    <time datetime={iso} title={iso}>
      {`${iso.slice(0, 10)} ${iso.slice(11, 19)}`}
    </time>
  );
}

/** Says once on a page in which zone its times are. */
export function Zone() {
  return (
    <p class="note" data-zone>
      Times are in UTC.
    </p>
  );
}
