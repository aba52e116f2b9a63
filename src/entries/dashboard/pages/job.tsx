import { CLAIM_REFUSED, type JsonText, type ShownJob } from '../../../internal.ts';
import { word } from '../../filter/filter.ts';
import { complainOnce } from '../complain-once.ts';
import { h } from '../html.ts';
import { ownText } from '../own-text.ts';
import { ActionForm, AskingForm } from '../parts/action-form.tsx';
import { Card, Fact } from '../parts/card.tsx';
import { Empty } from '../parts/empty.tsx';
import { History } from '../parts/history.tsx';
import { Page } from '../parts/layout.tsx';
import { Ago, Since } from '../parts/moment.tsx';
import { Shown } from '../parts/shown.tsx';
import { State } from '../parts/state.tsx';
import { Steps, type StepsOfJob, WaitsFor } from '../parts/steps.tsx';
import { Foreign, visible } from '../parts/text.tsx';
import { Value } from '../parts/value.tsx';
import { revealed, type Visit } from '../visit.ts';

/**
 * One job: what became of it and when, why it failed, and what it is about.
 *
 * @param workflow what the queue's workflows know of it; `undefined` where the queue has none
 */
export function jobPage(visit: Visit, job: ShownJob, workflow: { readonly found: StepsOfJob } | undefined) {
  const { links, nowMs } = visit;
  const title = `${visible(job.kind)} #${job.id}`;
  return (
    <Page visit={visit} title={title} aside={<State state={job.state} cancelling={job.cancelling} />}>
      <Actions visit={visit} job={job} />
      <div class="columns">
        <History visit={visit} job={job} />
        <Card id="facts" title="Facts" look="facts">
          <dl>
            <Fact name="Queue">
              <a href={links.jobs(word('queue', job.queue))}>
                <Foreign text={job.queue} />
              </a>
            </Fact>
            <Fact name="Kind">
              <a href={links.jobs(word('kind', job.kind))}>
                <Foreign text={job.kind} mono />
              </a>
            </Fact>
            <Fact name="Attempt">
              {job.attempt} of {job.maxAttempts}
            </Fact>
            <Fact name="Priority">{job.priority}</Fact>
            {job.state === 'running' ? (
              <Fact name="Running for">
                <Since at={job.claimedAt} nowMs={nowMs} />
              </Fact>
            ) : job.finishedAt === null && job.runAt !== null ? (
              <Fact name={job.state === 'scheduled' ? 'Due' : 'Due since'}>
                <Ago at={job.runAt} nowMs={nowMs} />
              </Fact>
            ) : null}
            {workflow?.found?.flow === undefined ? null : (
              <Fact name="Flow">
                <a href={links.to(`/flows/${workflow.found.flow}`)}>#{workflow.found.flow}</a>
              </Fact>
            )}
            {workflow === undefined ? null : (
              <WaitsFor visit={visit} job={job} found={workflow.found} setAside={isSetAside(job)} />
            )}
            {job.workerId === null ? null : <Fact name="Worker">#{job.workerId}</Fact>}
            {job.uniqueKey === null ? null : (
              <Fact name="Unique key">
                <Shown visit={visit} job={job} field="uniqueKey" text={job.uniqueKey} mono />
              </Fact>
            )}
            {job.group === null ? null : (
              <Fact name="Group">
                <Shown visit={visit} job={job} field="group" text={job.group} />
              </Fact>
            )}
            {Object.entries(job.own).map(([key, value]) => (
              <Fact name={key}>
                <Shown visit={visit} job={job} field="own" column={key} text={ownText(value)} mono />
              </Fact>
            ))}
            <Trace visit={visit} job={job} />
          </dl>
        </Card>
      </div>
      {job.progressText === null ? null : <Progress visit={visit} job={job} />}
      {workflow === undefined ? null : <Steps visit={visit} job={job} found={workflow.found} />}
      {job.payloadText === null ? (
        <Card id="payload" title="Payload">
          <p class="muted">not kept</p>
        </Card>
      ) : (
        <Value visit={visit} job={job} field="payload" title="Payload" json={job.payloadText} />
      )}
      {job.outputText === null ? null : (
        <Value visit={visit} job={job} field="output" title="Output" json={job.outputText} />
      )}
      {isEmpty(job.metadataText) ? null : (
        <Value visit={visit} job={job} field="metadata" title="Metadata" json={job.metadataText} />
      )}
    </Page>
  );
}

/** Whether it was parked because the database refused its claim. */
function isSetAside({ state, errors }: ShownJob): boolean {
  return state === 'waiting' && errors.at(-1)?.name === CLAIM_REFUSED;
}

function Actions({ visit, job }: { readonly visit: Visit; readonly job: ShownJob }) {
  const of = `job ${job.id}`;
  const fields = { id: job.id };
  if (job.finishedAt !== null) {
    return job.state === 'discarded' ? (
      <div class="actions">
        <ActionForm visit={visit} action="redrive" fields={fields} label="Redrive" of={of} tone="main" />
      </div>
    ) : null;
  }
  const running = job.state === 'running';
  return (
    <div class="actions">
      {job.state === 'scheduled' || isSetAside(job) ? (
        <ActionForm
          visit={visit}
          action="runNow"
          path="run-now"
          fields={fields}
          label="Run now"
          of={of}
          tone="main"
        />
      ) : null}
      {job.cancelling ? null : (
        <AskingForm
          visit={visit}
          action="cancel"
          fields={fields}
          label="Cancel"
          of={of}
          question={
            running
              ? 'The handler is told to stop. The job ends as cancelled, unless the attempt completes first.'
              : 'The job ends as cancelled and never runs.'
          }
        />
      )}
      {running ? (
        <AskingForm
          visit={visit}
          action="force"
          fields={fields}
          label="End at once"
          of={of}
          question="The job ends as cancelled now. Its handler is not waited for, and what it did stays done."
        />
      ) : null}
    </div>
  );
}

/** A number from 0 to 1, or to 100, is a bar; anything else is shown as it is. */
function Progress({ visit, job }: { readonly visit: Visit; readonly job: ShownJob }) {
  const json = job.progressText ?? { text: 'null', length: 4 };
  const text = revealed(visit, job, 'progress', { text: json.text });
  const share = text === null ? undefined : shareOf(text);
  if (share === undefined)
    return <Value visit={visit} job={job} field="progress" title="Progress" json={json} />;
  const percent = Math.round(share * 100);
  return (
    <Card id="progress" title="Progress" look="progress">
      <progress max={100} value={percent} aria-labelledby="progress-title" />
      <b>{percent} %</b>
    </Card>
  );
}

function shareOf(text: string): number | undefined {
  const [, bare] = /^(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  const [, named] = /"(?:percent|share|progress|fraction)": (\d+(?:\.\d+)?)[,\n}]/.exec(text) ?? [];
  const [, done] = /"done": (\d+)[,\n}]/.exec(text) ?? [];
  const [, total] = /"(?:total|of)": ([1-9]\d*)[,\n}]/.exec(text) ?? [];
  const number = bare ?? named;
  if (number === undefined) {
    return done === undefined || total === undefined ? undefined : Math.min(1, Number(done) / Number(total));
  }
  const value = Number(number);
  return value <= 1 ? value : value <= 100 ? value / 100 : undefined;
}

function Trace({ visit, job }: { readonly visit: Visit; readonly job: ShownJob }) {
  const { traceUrl } = visit.settings;
  if (traceUrl === undefined || job.metadataText.length > job.metadataText.text.length) return null;
  let url: string | undefined;
  try {
    url = traceUrl(JSON.parse(job.metadataText.text));
  } catch (error) {
    complainOnce(traceUrl, 'traceUrl threw an error, so a job has no link to its trace:', error);
  }
  // Only an address that cannot run anything.
  if (url === undefined || !/^https?:\/\//i.test(url)) return null;
  return (
    <Fact name="Trace">
      <a href={url} rel="noreferrer">
        open
      </a>
    </Fact>
  );
}

/** PostgreSQL writes an empty object over two lines. */
function isEmpty({ text }: JsonText): boolean {
  return /^\{\s*\}$/.test(text);
}

/** Stands where a job is not, or is not theirs. */
export function noJobPage(visit: Visit, id: string) {
  return (
    <Page visit={visit} title="No such job">
      <section class="card">
        <Empty title={`Job #${id} does not exist, or is outside your scope`}>
          It may have completed with keepResult: false, or its result was pruned.
        </Empty>
      </section>
    </Page>
  );
}
