import { ERROR_EXCERPT, type JobLine } from '../../../internal.ts';
import { h } from '../html.ts';
import { revealed, type Visit } from '../visit.ts';
import { Ago, Since } from './moment.tsx';
import { Hidden, Shown, ShownText } from './shown.tsx';
import { State } from './state.tsx';
import { Foreign } from './text.tsx';

const SHOWN = 120;

interface JobTableProps {
  readonly visit: Visit;
  readonly jobs: readonly JobLine[];
  /** Whether each row has a box to tick, for the form around the table. */
  readonly selectable: boolean;
}

/** Jobs, one row each, and what each is about on one line. */
export function JobTable({ visit, jobs, selectable }: JobTableProps) {
  return (
    <table class={selectable ? 'rows jobs is-selectable' : 'rows jobs'}>
      <thead>
        <tr>
          {selectable ? (
            <th scope="col" class="box">
              <input type="checkbox" id="select-all" aria-label="Select all jobs of this page" hidden />
              <span class="unseen">Selected</span>
            </th>
          ) : null}
          <th scope="col">Job</th>
          <th scope="col">State</th>
          <th scope="col" class="wide">
            Payload
          </th>
          <th scope="col">Queue</th>
          <th scope="col" class="number">
            Attempt
          </th>
          <th scope="col" class="number">
            When
          </th>
        </tr>
      </thead>
      <tbody>
        {jobs.map((job) => (
          <tr id={`job-${job.id}`} data-row>
            {selectable ? (
              <td class="box">
                <input type="checkbox" name="id" value={job.id} aria-label={`Select job ${job.id}`} />
              </td>
            ) : null}
            <td>
              <a class="row-link" href={visit.links.job(job.id)}>
                <Foreign text={job.kind} mono />
                <span class="muted"> #{job.id}</span>
              </a>
            </td>
            <td>
              <State state={job.state} cancelling={job.cancelling} />
            </td>
            <td class="wide">
              <About visit={visit} job={job} />
            </td>
            <td>
              <Foreign text={job.queue} />
              {job.group === null ? null : (
                <span class="muted">
                  {' · '}
                  <Shown visit={visit} job={job} field="group" text={job.group} />
                </span>
              )}
            </td>
            <td class="number">
              {job.attempt}
              <span class="muted">/{job.maxAttempts}</span>
            </td>
            <td class="number">
              {job.state === 'running' ? (
                <Since at={job.claimedAt} nowMs={visit.nowMs} />
              ) : (
                <Ago at={job.finishedAt ?? job.runAt ?? job.createdAt} nowMs={visit.nowMs} />
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Its newest error if that is why it stands here, otherwise the beginning of its payload. */
function About({ visit, job }: { readonly visit: Visit; readonly job: JobLine }) {
  if (job.error !== null && job.state !== 'completed') {
    const { name, message } = job.error;
    const text = revealed(visit, job, 'error', {
      text: message,
      cut: message.length === ERROR_EXCERPT,
    });
    const shownName = revealed(visit, job, 'errorName', { text: name });
    if (text !== null && shownName !== null) {
      return (
        <span class="line bad">
          <Foreign text={oneLine(`${shownName}: ${text}`)} />
        </span>
      );
    }
    return (
      <span class="line bad">
        <ShownText text={shownName} />
        {': '}
        <ShownText text={text === null ? null : oneLine(text)} />
      </span>
    );
  }
  if (!job.payloadKept) return <span class="muted">not kept</span>;
  if (job.payload === null) return <span class="muted">more than 256 kB</span>;
  if (job.payload === 'null') return <span class="muted">–</span>;
  const text = revealed(visit, job, 'payload', {
    text: job.payload,
    cut: job.payload.length >= excerptOf(visit),
  });
  return text === null ? <Hidden /> : <span class="line mono">{<Foreign text={oneLine(text)} />}</span>;
}

/** How many characters of each payload a list needs: an app's own function may want to parse it. */
export function excerptOf(visit: Visit): number {
  return visit.settings.show === undefined ? SHOWN * 2 : 65_536;
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ');
  return line.length > SHOWN ? `${line.slice(0, SHOWN)}…` : line;
}
