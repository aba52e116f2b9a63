import type { MailboxRecord } from '../../../index.ts';
import { isUndo, type ShownJob, type ShownStep, type ShownSteps } from '../../../internal.ts';
import { countText, durationText } from '../duration.ts';
import { type Child, Fragment, h } from '../html.ts';
import type { ShownField } from '../show.ts';
import { stepState } from '../step-state.ts';
import { isPlain, may, revealed, type Visit } from '../visit.ts';
import { ActionForm } from './action-form.tsx';
import { Card, Fact } from './card.tsx';
import { OneError } from './history.tsx';
import { Ago, At } from './moment.tsx';
import { ShownText } from './shown.tsx';
import { Foreign, visible } from './text.tsx';
import { isCut, ShownJson } from './value.tsx';

/** How many steps a page shows, and how much of each output. */
export const MOST_STEPS = 200;
export const STEP_CUT = 4_096;

/** What the workflow of a job has recorded; `undefined` where that could not be read. */
export type StepsOfJob =
  | (ShownSteps & {
      readonly mailboxes: readonly MailboxRecord[];
      /** The flow that the job is part of. */
      readonly flow: number | undefined;
    })
  | undefined;

interface StepsProps {
  readonly visit: Visit;
  readonly job: ShownJob;
  readonly found: StepsOfJob;
}

/** The recorded steps of a job in the order in which they began, and the signals that it has not received. */
export function Steps({ visit, job, found }: StepsProps) {
  if (found === undefined) {
    return (
      <Card id="steps" title="Steps">
        <p class="muted">
          The steps could not be read: the tables of workflows are missing, locked, or too slow.
        </p>
      </Card>
    );
  }
  const { steps, count, mailboxes } = found;
  const unheard = mailboxes.filter(({ sent, received }) => sent > received);
  if (count === 0 && unheard.length === 0) return null;
  const before = count - steps.length;
  return (
    <Card id="steps" title="Steps">
      {before === 0 ? null : (
        <p class="note">
          The newest {countText(steps.length)} of {countText(count)} steps. In a terminal,{' '}
          <code>npx drizzle-queue show {job.id}</code> prints all.
        </p>
      )}
      {count === 0 ? null : (
        <ol class="timeline steps">
          {steps.map((step, index) => (
            <Step visit={visit} job={job} step={step} found={found} id={`step-${before + index + 1}`} />
          ))}
        </ol>
      )}
      {unheard.length === 0 ? null : <Unheard visit={visit} mailboxes={unheard} />}
    </Card>
  );
}

interface StepProps {
  readonly visit: Visit;
  readonly job: ShownJob;
  readonly step: ShownStep;
  readonly found: NonNullable<StepsOfJob>;
  readonly id: string;
}

function Step({ visit, job, step, found, id }: StepProps) {
  const { name, kind, signal, attempts, until, startedAt, endedAt, outputText, error, children } = step;
  const facts = { kind, hasOutput: outputText !== null, hasFailed: error !== null, endedAt };
  const state = stepState(facts, job.finishedAt === null);
  const shown = (field: ShownField['field'], text: string, cut = false) =>
    revealed(visit, job, field, { text, cut, step: name });
  const shownName = shown('step', name);
  return (
    <li class={`tone-${state.tone}`} id={id}>
      <span class="what">
        <ShownText text={shownName} mono /> <span class="muted">{kind}</span>
      </span>
      <span class="at">
        <At at={startedAt} />
      </span>
      <span class="span">
        {state.text}
        {endedAt === null ? null : (
          <>
            {' '}
            after <b>{durationText(endedAt.getTime() - startedAt.getTime())}</b>, at <At at={endedAt} />
          </>
        )}
        {signal === null ? null : (
          <>
            {' · '}signal <Foreign text={signal} mono />
          </>
        )}
        {children === null ? null : [' · ', childrenOf(visit, job, step)]}
        {kind === 'signal' || job.finishedAt !== null
          ? null
          : awaitedBy(visit, job, step, found).map((each) => [' · ', each])}
        {until === null || endedAt !== null ? null : (
          <>
            {' · '}until <At at={until} /> (<Ago at={until} nowMs={visit.nowMs} />)
          </>
        )}
        {attempts > 1 ? ` · ${attempts} tries` : null}
      </span>
      {outputText === null ? null : (
        <details class="span" id={`${id}-output`}>
          <summary>Output</summary>
          <ShownJson
            text={shown('output', outputText.text, isCut(outputText))}
            json={outputText}
            whole={shownName === name ? visit.links.to(`/jobs/${job.id}/step`, { name }) : undefined}
          />
        </details>
      )}
      {shownName === name && !isUndo(name) ? <FromHere visit={visit} job={job} name={name} /> : null}
      {error === null ? null : (
        <div class="span">
          <OneError visit={visit} job={job} error={error} open id={`${id}-error`} step={name} />
        </div>
      )}
    </li>
  );
}

/** The jobs that a step has enqueued, up to `most` with links, and how many of them have ended. */
function childrenOf(
  visit: Visit,
  job: ShownJob,
  { name, outputText, children }: ShownStep,
  most?: number,
): Child {
  // They may be of queues that this viewer must not see.
  if (!children || !outputText || !visit.granted.whole) return 'children';
  const { count, ended, failed } = children;
  const ids = children.ids.slice(0, most);
  // They stand in the output, which may be hidden.
  const output = { text: outputText.text, cut: isCut(outputText), step: name };
  return [
    isPlain(visit, job, 'output', output)
      ? [
          ids.map((id, at) => [at === 0 ? '' : ', ', <a href={visit.links.job(id)}>#{id}</a>]),
          count > ids.length ? ` and ${countText(count - ids.length)} more` : '',
        ]
      : 'children',
    ended === null ? '' : `: ${countText(ended)} of ${countText(count)} ended`,
    failed === 0 ? '' : `, ${countText(failed)} failed`,
  ];
}

/**
 * What an open wait waits for, beside a time. Its own row does not say that, but mailboxes and batches do: of
 * waits side by side each is told what all of them wait for, apart from a `waitForJob`.
 */
function awaitedBy(
  visit: Visit,
  job: ShownJob,
  { name, kind, signal, startedAt, endedAt, error }: ShownStep,
  { steps, mailboxes }: NonNullable<StepsOfJob>,
): Child[] {
  if (endedAt !== null || error !== null) return [];
  if (signal !== null) return [<Foreign text={signal} mono />];
  if (kind !== 'wait' && kind !== 'first') return [];
  const signals = kind === 'first' ? mailboxes : [];
  const awaited = steps.filter(({ children }) => children?.awaited);
  const own = awaited.filter((step) => name === endOf(step));
  const waits = new Set(steps.flatMap((step) => (step.endedAt === null ? step.name : [])));
  const others = awaited.filter((step) => !waits.has(endOf(step)));
  return [
    // An older one is what is left of an earlier wait.
    ...signals.flatMap(({ signal, waiting, updatedAt }) =>
      waiting && updatedAt >= startedAt ? (
        <>
          signal <Foreign text={signal} mono />
        </>
      ) : (
        []
      ),
    ),
    ...(own.length > 0 ? own : others).map((step) => childrenOf(visit, job, step, 3)),
  ];
}

/** The name of the step that waits for the child of another. */
function endOf({ name }: ShownStep): string {
  return `${name}: end`;
}

/** What can be done again from a step on. */
function FromHere({ visit, job, name }: Pick<StepProps, 'visit' | 'job'> & { readonly name: string }) {
  const { state } = job;
  const redrives = state !== 'completed' && state !== 'running' && !job.cancelling && may(visit, 'redrive');
  const forks = job.payloadText !== null && may(visit, 'fork');
  if (!redrives && !forks) return null;
  const of = `, step ${name}`;
  const given = { visit, fields: { id: job.id, step: name }, of };
  return (
    <details class="asking span">
      <summary class="button">
        From here<span class="unseen">{visible(of)}</span>
      </summary>
      <div class="asked">
        {redrives ? (
          <>
            <p>The job does this step and all later ones again. What they have recorded is forgotten.</p>
            <ActionForm
              {...given}
              action="redrive"
              path="redrive-from"
              label="Redrive from here"
              tone="danger"
            />
          </>
        ) : null}
        {forks ? (
          <>
            <p>
              A new job takes over the steps before this one, and does the others. This job stays as it is.
            </p>
            <ActionForm {...given} action="fork" label="Fork from here" tone="main" />
          </>
        ) : null}
      </div>
    </details>
  );
}

function Unheard({
  visit,
  mailboxes,
}: {
  readonly visit: Visit;
  readonly mailboxes: readonly MailboxRecord[];
}) {
  return (
    <>
      <h3>Signals that were not received</h3>
      <ul>
        {mailboxes.map(({ signal, sent, received, updatedAt }) => (
          <li>
            <Foreign text={signal} mono /> <b>{countText(sent - received)}</b>{' '}
            <span class="muted">
              last sent <Ago at={updatedAt} nowMs={visit.nowMs} />
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

interface WaitsForProps extends StepsProps {
  /** Whether the database has refused its claim, which is all that it waits for then. */
  readonly setAside: boolean;
}

/** What a live job waits for, among its facts. */
export function WaitsFor({ visit, job, found, setAside }: WaitsForProps) {
  if (found === undefined || job.finishedAt !== null || job.state === 'running') return null;
  const open = found.steps.filter(({ endedAt, error }) => endedAt === null && error === null);
  if (open.length === 0) {
    const isBehind = job.state === 'waiting' && found.count === 0 && found.flow !== undefined && !setAside;
    return isBehind ? <Fact name="Waits for">the jobs before it in its flow</Fact> : null;
  }
  return (
    <Fact name="Waits for">
      {open.map((step, index) => {
        const { name, until } = step;
        const awaited = awaitedBy(visit, job, step, found);
        return (
          <>
            {index === 0 ? null : ', '}
            {awaited.length === 0 ? (
              <ShownText text={revealed(visit, job, 'step', { text: name, step: name })} mono />
            ) : (
              awaited.map((each, at) => [at === 0 ? '' : step.kind === 'first' ? ' or ' : ', ', each])
            )}
            {until === null ? null : (
              <>
                {' '}
                until <Ago at={until} nowMs={visit.nowMs} />
              </>
            )}
          </>
        );
      })}
    </Fact>
  );
}
