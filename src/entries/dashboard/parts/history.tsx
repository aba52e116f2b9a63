import type { AttemptError } from '../../../core/schema/index.ts';
import type { ShownJob } from '../../../internal.ts';
import { durationText } from '../duration.ts';
import { h } from '../html.ts';
import { timelineOf } from '../timeline.ts';
import { revealed, type Visit } from '../visit.ts';
import { Card } from './card.tsx';
import { At, Since, Zone } from './moment.tsx';
import { Hidden, ShownText } from './shown.tsx';
import { Foreign, visible } from './text.tsx';

interface HistoryProps {
  readonly visit: Visit;
  readonly job: ShownJob;
}

/** What a job went through, and what its attempts failed with. */
export function History({ visit, job }: HistoryProps) {
  return (
    <Card id="timeline" title="Timeline">
      <Timeline visit={visit} job={job} />
      <Zone />
      {job.errors.length === 0 ? null : <Errors visit={visit} job={job} />}
    </Card>
  );
}

function Timeline({ visit, job }: HistoryProps) {
  const errors = job.errors.map((error) => ({ ...error, name: nameOf(visit, job, error) ?? 'hidden' }));
  const moments = timelineOf({ ...job, errors });
  return (
    <ol class="timeline">
      {moments.map(({ what, tone, at, spent }, index) => {
        const next = moments[index + 1];
        return (
          <li class={`tone-${tone}`}>
            <span class="what">
              <Foreign text={what} />
            </span>
            <span class="at">
              <At at={at} />
            </span>
            {spent === undefined ||
            (next === undefined && !['has run', 'has waited'].includes(spent)) ? null : (
              <span class="span">
                {spent}{' '}
                {next === undefined ? (
                  <Since at={at} nowMs={visit.nowMs} />
                ) : (
                  <b>{durationText(next.at.getTime() - at.getTime())}</b>
                )}
              </span>
            )}
          </li>
        );
      })}
    </ol>
  );
}

/** The name of an error; that of a cancel is the library's own. */
function nameOf(
  visit: Visit,
  job: ShownJob,
  { name }: Pick<AttemptError, 'name'>,
  step?: string,
): string | null {
  return name === 'Cancelled' ? name : revealed(visit, job, 'errorName', { text: String(name), step });
}

function Errors({ visit, job }: HistoryProps) {
  const newest = job.errors.length - 1;
  return (
    <div class="errors">
      <h3>Errors, newest first</h3>
      {[...job.errors].reverse().map((error, place) => (
        <OneError visit={visit} job={job} error={error} open={place === 0} id={`error-${newest - place}`} />
      ))}
    </div>
  );
}

interface OneErrorProps {
  readonly visit: Visit;
  readonly job: ShownJob;
  readonly error: Pick<AttemptError, 'name' | 'message' | 'stack'> & { readonly attempt?: number };
  readonly open: boolean;
  readonly id: string;
  /** The name of the step that has thrown it. */
  readonly step?: string;
}

/** The name of an error, its message with its causes, and its stack. */
export function OneError({ visit, job, error, open, id, step }: OneErrorProps) {
  const shown = (text: string) => revealed(visit, job, 'error', { text: String(text), step });
  const message = shown(error.message);
  const stack = error.stack === undefined ? null : shown(error.stack);
  const [first = '', ...causes] = (message ?? '').split(' [cause] ');
  return (
    <details class="error" id={id} open={open}>
      <summary>
        {error.attempt === undefined ? null : <span class="muted">Attempt {error.attempt} </span>}
        <ShownText text={nameOf(visit, job, error, step)} mono />
      </summary>
      {message === null ? <Hidden /> : <p class="message">{<Foreign text={first} />}</p>}
      <Causes texts={causes} />
      {stack === null ? null : (
        <pre class="code stack" tabindex={0}>
          <code>{visible(stack)}</code>
        </pre>
      )}
    </details>
  );
}

/** What an error was caused by. */
export function Causes({ texts }: { readonly texts: readonly string[] }) {
  return texts.map((text) => (
    <p class="cause">
      <span class="muted">caused by</span> <Foreign text={text} />
    </p>
  ));
}
