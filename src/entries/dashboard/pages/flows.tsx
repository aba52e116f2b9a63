import type { ListedFlow, FlowState as State, Workflows } from '../../../index.ts';
import { countText, durationText } from '../duration.ts';
import { Fragment, h } from '../html.ts';
import { Empty } from '../parts/empty.tsx';
import { FlowState } from '../parts/flow-state.tsx';
import { Page, SlowPage } from '../parts/layout.tsx';
import { Ago } from '../parts/moment.tsx';
import { TableHead } from '../parts/table-head.tsx';
import { Foreign } from '../parts/text.tsx';
import { LOOK_MS, scopeName, type Visit } from '../visit.ts';

const PAGE = 50;
const STATES: readonly { readonly state: State | undefined; readonly text: string }[] = [
  { state: undefined, text: 'all' },
  { state: 'open', text: 'in progress' },
  { state: 'failed', text: 'failed' },
  { state: 'completed', text: 'completed' },
];

const EXAMPLE = `await queue.workflows.enqueueFlow(tx, (flow) => {
  const page = flow.add(readPage, { url });
  flow.add(makeReport, { title }, { after: [page] });
});`;

/** Jobs that wait for each other, and batches: the newest first. */
export async function flowsPage(visit: Visit, workflows: Workflows) {
  const { searches, viewer, query, links } = visit;
  const { state } = STATES.find((each) => each.state === query.get('state')) ?? { state: undefined };
  const cursor = Number(/^[1-9]\d{0,14}$/.exec(query.get('after') ?? '')?.[0] ?? 0) || undefined;
  const name = JSON.stringify(['flows', scopeName(visit), state, cursor]);
  const answer = await searches.at(viewer, name, LOOK_MS, (db) =>
    workflows.flows(db, { state, cursor, limit: PAGE }),
  );
  if (answer === undefined) return <SlowPage visit={visit} title="Flows" />;
  const { flows, nextCursor, truncated } = answer.value;
  return (
    <Page visit={visit} title="Flows" foundAt={answer.at}>
      <nav aria-label="States">
        <ul class="chips">
          {STATES.map((each) => (
            <li>
              <a
                href={links.to('/flows', { state: each.state })}
                aria-current={each.state === state ? 'true' : undefined}
              >
                {each.text}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <section class="card" aria-label="Flows">
        {flows.length > 0 ? (
          <table class="rows">
            <TableHead
              columns={['Flow', 'State', { number: 'Ended' }, { number: 'Enqueued' }, { number: 'Took' }]}
            />
            <tbody>
              {flows.map((flow) => (
                <Row visit={visit} flow={flow} />
              ))}
            </tbody>
          </table>
        ) : state === undefined && cursor === undefined ? (
          <Empty title="No flow yet" code={EXAMPLE}>
            A flow is jobs that wait for each other. It is listed until their results are pruned.
          </Empty>
        ) : (
          <p class="muted">There are none{truncated ? ' among the flows that were looked through' : ''}.</p>
        )}
        <footer class="pages">
          {nextCursor === undefined ? null : (
            <a rel="next" href={links.to('/flows', { state, after: nextCursor })}>
              {truncated ? 'Look further' : 'More'}
            </a>
          )}
        </footer>
      </section>
    </Page>
  );
}

function Row({ visit, flow }: { readonly visit: Visit; readonly flow: ListedFlow }) {
  const { id, kinds, total, pending, createdAt, endedAt } = flow;
  const { links, nowMs } = visit;
  return (
    <tr id={`flow-${id}`} data-row>
      <td>
        <a class="row-link" href={links.to(`/flows/${id}`)}>
          #{id}
        </a>
        <div class="muted">
          {kinds.map((kind, at) => (
            <>
              {at === 0 ? '' : ' · '}
              <Foreign text={kind} mono />
            </>
          ))}
        </div>
      </td>
      <td>
        <FlowState flow={flow} />
      </td>
      <td class="number">
        {countText(total - pending)} of {countText(total)}
      </td>
      <td class="number" data-name="enqueued">
        <Ago at={createdAt} nowMs={nowMs} />
      </td>
      <td class="number" data-name="took">
        {endedAt === null ? (
          <span class="muted">–</span>
        ) : (
          durationText(endedAt.getTime() - createdAt.getTime())
        )}
      </td>
    </tr>
  );
}
