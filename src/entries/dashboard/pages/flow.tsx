import type { FlowGraph, FlowGroup, JobState, Workflows } from '../../../index.ts';
import type { JobLine } from '../../../internal.ts';
import { countText } from '../duration.ts';
import { h } from '../html.ts';
import { ActionForm, AskingForm } from '../parts/action-form.tsx';
import { Card, Fact } from '../parts/card.tsx';
import { Empty } from '../parts/empty.tsx';
import { Graph, partsOf, ZOOMS } from '../parts/flow-graph.tsx';
import { FlowState } from '../parts/flow-state.tsx';
import { excerptOf, JobTable } from '../parts/job-table.tsx';
import { Page, SlowPage } from '../parts/layout.tsx';
import { Ago } from '../parts/moment.tsx';
import { Shown } from '../parts/shown.tsx';
import { visible } from '../parts/text.tsx';
import { LOOK_MS, scopeName, type Visit } from '../visit.ts';

const LISTED = 50;

/** What is seen of a flow: its graph, and the jobs of the group that is chosen. */
interface Seen {
  readonly graph: FlowGraph;
  readonly group: FlowGroup | undefined;
  readonly jobs: readonly JobLine[];
}

/** A flow as a graph; `undefined` where there is none in the viewer's scope. */
export async function flowPage(visit: Visit, workflows: Workflows, id: number) {
  const { searches, viewer, granted, query } = visit;
  const [key, state = '', above = ''] = ['group', 'state', 'after'].map((name) => query.get(name) ?? '');
  const look = async (db: Parameters<Workflows['flow']>[0]): Promise<Seen | undefined> => {
    const graph = await workflows.graphIn(db, id, granted.scope);
    const group = graph?.groups.find((each) => each.key === key);
    if (graph === undefined || group === undefined || group.batchId === null) {
      return graph && { graph, group: undefined, jobs: [] };
    }
    const jobs = await workflows.groupJobs(db, {
      batchId: group.batchId,
      kind: group.kind ?? undefined,
      after: group.afterBatches,
      state: partsOf(group).find(({ text }) => text === state)?.text as JobState | undefined,
      above: Number(/^\d{1,15}$/.exec(above)?.[0] ?? 0),
      limit: LISTED + 1,
      scope: granted.scope,
      excerpt: excerptOf(visit),
    });
    return { graph, group, jobs };
  };
  const name = JSON.stringify(['flow', scopeName(visit), id, key, state, above]);
  const answer = await searches.at(viewer, name, LOOK_MS, look);
  if (answer === undefined) return <SlowPage visit={visit} title="Flow" />;
  return answer.value && <Flow visit={visit} seen={answer.value} at={answer.at} state={state} />;
}

/** Stands where a flow is not, or is not theirs. */
export function noFlowPage(visit: Visit, id: string) {
  return (
    <Page visit={visit} title="No such flow">
      <section class="card">
        <Empty title={`Flow #${id} does not exist, or is outside your scope`}>
          A flow is deleted once the results of its jobs are pruned.
        </Empty>
      </section>
    </Page>
  );
}

interface FlowProps {
  readonly visit: Visit;
  readonly seen: Seen;
  readonly at: Date;
  readonly state: string;
}

function Flow({ visit, seen, at, state }: FlowProps) {
  const { graph, group, jobs } = seen;
  const { id, total, pending, failed, cancelReason, createdAt, endedAt, groups, isWhole } = graph;
  const zoom = zoomOf(visit.query.get('zoom'));
  const to = (changed: Readonly<Record<string, string | number | undefined>>) =>
    visit.links.to(`/flows/${id}`, { zoom: visit.query.get('zoom') ?? '', group: group?.key, ...changed });
  const percent = total === 0 ? 100 : Math.floor(((total - pending) * 100) / total);
  return (
    <Page visit={visit} title={`Flow #${id}`} aside={<FlowState flow={graph} />} foundAt={at}>
      <Actions visit={visit} graph={graph} />
      <Card id="progress" title="Progress" look="flow-facts">
        <progress max={100} value={percent} aria-labelledby="progress-title" />
        <dl>
          <Fact name="Jobs">{countText(total)}</Fact>
          <Fact name="Ended">{countText(total - pending)}</Fact>
          <Fact name="Failed">{countText(failed)}</Fact>
          <Fact name="Enqueued">
            <Ago at={createdAt} nowMs={visit.nowMs} />
          </Fact>
          {endedAt === null ? null : (
            <Fact name="Ended">
              <Ago at={endedAt} nowMs={visit.nowMs} />
            </Fact>
          )}
        </dl>
        {cancelReason === null || pending === 0 ? null : (
          <p class="note">
            {visit.granted.whole ? 'Its jobs are being ended: ' : 'Its jobs are being ended.'}
            {/* It is about jobs beyond a scope, too. */}
            {visit.granted.whole ? <Shown visit={visit} field="error" text={cancelReason} /> : null}
          </p>
        )}
      </Card>
      <Card id="flow" title="Graph">
        <nav class="zooms" aria-label="Zoom">
          <ul class="chips">
            {ZOOMS.map((each) => (
              <li>
                <a href={to({ zoom: each })} aria-current={zoom === each ? 'true' : undefined}>
                  {each} %
                </a>
              </li>
            ))}
            <li>
              <a href={to({ zoom: 'fit' })} aria-current={zoom === 'fit' ? 'true' : undefined}>
                fit
              </a>
            </li>
          </ul>
        </nav>
        {isWhole ? null : (
          <p class="note">The flow is too large to show whole: some groups, jobs or lines are left out.</p>
        )}
        <Graph
          visit={visit}
          groups={groups}
          chosen={group?.key}
          zoom={zoom}
          listOf={(key) => `${to({ group: key })}#jobs`}
        />
        <p class="note">
          Jobs of one kind with the same jobs before and after them are one box.
          {groups.some(({ onFailure }) => onFailure === 'run')
            ? ' After a dashed line jobs run also when one before them has failed.'
            : ''}
        </p>
      </Card>
      {group === undefined ? null : (
        <Card id="jobs" title={`${visible(group.kind ?? 'Jobs')} × ${countText(group.jobs)}`}>
          <ul class="chips" aria-label="States">
            <li>
              <a href={`${to({})}#jobs`} aria-current={state === '' ? 'true' : undefined}>
                all
              </a>
            </li>
            {partsOf(group)
              .filter(({ text }) => group.states !== undefined && text in group.states)
              .map(({ count, text }) => (
                <li>
                  <a href={`${to({ state: text })}#jobs`} aria-current={state === text ? 'true' : undefined}>
                    {text} {countText(count)}
                  </a>
                </li>
              ))}
          </ul>
          {jobs.length === 0 ? (
            <p class="muted">None of these jobs is left.</p>
          ) : (
            <JobTable visit={visit} jobs={jobs.slice(0, LISTED)} selectable={false} />
          )}
          <footer class="pages">
            {jobs.length > LISTED ? (
              <a rel="next" href={`${to({ state, after: jobs[LISTED - 1]?.id })}#jobs`}>
                More
              </a>
            ) : null}
          </footer>
        </Card>
      )}
    </Page>
  );
}

/** They act on all jobs of the flow, so only viewers who may see all jobs get them. */
function Actions({ visit, graph }: { readonly visit: Visit; readonly graph: FlowGraph }) {
  const { id, pending, failed, cancelReason } = graph;
  if (!visit.granted.whole) return null;
  const of = `${id}`;
  return (
    <div class="actions">
      {failed === 0 ? null : (
        <ActionForm
          visit={visit}
          action="redrive"
          path="redrive-flow"
          fields={{ id }}
          label="Redrive flow"
          of={of}
          tone="main"
        />
      )}
      {pending === 0 || cancelReason !== null ? null : (
        <AskingForm
          visit={visit}
          action="cancel"
          path="cancel-flow"
          fields={{ id }}
          label="Cancel flow"
          of={of}
          question={`${countText(pending)} jobs have not ended. Handlers that run are told to stop.`}
        />
      )}
    </div>
  );
}

function zoomOf(text: string | null): number | 'fit' {
  return text === 'fit' ? 'fit' : (ZOOMS.find((zoom) => String(zoom) === text) ?? 100);
}
