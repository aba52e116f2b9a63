import type { JsonText as Json, ShownJob } from '../../../internal.ts';
import { countText } from '../duration.ts';
import { Fragment, h } from '../html.ts';
import type { ShownField } from '../show.ts';
import { revealed, type Visit } from '../visit.ts';
import { Card } from './card.tsx';
import { Hidden } from './shown.tsx';
import { JsonText } from './text.tsx';

/** How much of a value a page shows. */
export const CUT = 65_536;

interface ValueProps {
  readonly visit: Visit;
  readonly job: ShownJob;
  readonly field: Extract<ShownField['field'], 'payload' | 'output' | 'metadata' | 'progress'>;
  readonly title: string;
  readonly json: Json;
}

/** A JSON value of a job as Postgres writes it. */
export function Value({ visit, job, field, title, json }: ValueProps) {
  const text = revealed(visit, job, field, { text: json.text, cut: isCut(json) });
  return (
    <Card id={field} title={title}>
      <ShownJson text={text} json={json} whole={visit.links.to(`/jobs/${job.id}/${field}`)} />
    </Card>
  );
}

/** Whether a text is only the beginning of a value. */
export function isCut({ text, length }: Json): boolean {
  return length > text.length;
}

interface ShownJsonProps {
  /** As `show` has decided. */
  readonly text: string | null;
  readonly json: Json;
  /** Where the whole value can be downloaded. */
  readonly whole: string | undefined;
}

/** The text of a JSON value, and how much of it that is. */
export function ShownJson({ text, json, whole }: ShownJsonProps) {
  return (
    <>
      {text === null ? (
        <p>
          <Hidden />
        </p>
      ) : (
        <pre class="code" tabindex={0}>
          <JsonText text={text} />
        </pre>
      )}
      {isCut(json) ? (
        <p class="note">
          The first {countText(json.text.length)} of {countText(json.length)} characters.{' '}
          {text === null || whole === undefined ? null : <a href={whole}>Download all</a>}
        </p>
      ) : null}
    </>
  );
}
