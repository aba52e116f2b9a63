import { h } from '../html.ts';
import type { ShownField } from '../show.ts';
import { revealed, type Visit } from '../visit.ts';
import { Foreign } from './text.tsx';

interface ShownProps {
  readonly visit: Visit;
  readonly job?: ShownField['job'];
  readonly field: ShownField['field'];
  readonly column?: string;
  readonly text: string;
  readonly mono?: boolean;
}

/** A value that may be secret, as `show` decides. */
export function Shown({ visit, job, field, column, text, mono = false }: ShownProps) {
  const shown = revealed(visit, job, field, { text, column });
  return <ShownText text={shown} mono={mono} />;
}

/** A text, or that it is hidden. */
export function ShownText({ text, mono = false }: { readonly text: string | null; readonly mono?: boolean }) {
  return text === null ? <Hidden /> : <Foreign text={text} mono={mono} />;
}

/** Says that a value is hidden. */
export function Hidden() {
  return (
    <span class="muted hidden-value">
      <svg viewBox="0 0 16 16" class="lock" aria-hidden="true">
        <path d="M4 7V5a4 4 0 0 1 8 0v2h1v8H3V7zm2 0h4V5a2 2 0 0 0-4 0z" />
      </svg>
      hidden
    </span>
  );
}
