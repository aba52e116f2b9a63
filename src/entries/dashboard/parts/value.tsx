import type { JsonText as Json, ShownJob } from '../../../core/queries/operate/show-job.ts';
import { countText } from '../duration.ts';
import type { ShownField } from '../show.ts';
import { revealed, type Visit } from '../visit.ts';
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
  const cut = json.length > json.text.length;
  const text = revealed(visit, job, field, { text: json.text, cut });
  return (
    <section class="card" aria-labelledby={`${field}-title`}>
      <h2 id={`${field}-title`}>{title}</h2>
      {text === null ? (
        <p>
          <Hidden />
        </p>
      ) : (
        <pre class="code" tabindex={0}>
          <JsonText text={text} />
        </pre>
      )}
      {cut ? (
        <p class="note">
          The first {countText(CUT)} of {countText(json.length)} characters.{' '}
          {text === null ? null : <a href={visit.links.to(`/jobs/${job.id}/${field}`)}>Download all</a>}
        </p>
      ) : null}
    </section>
  );
}
