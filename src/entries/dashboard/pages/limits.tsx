import type { Executor, GroupRecord, LimitRecord, LimitSettings, Limits } from '../../../index.ts';
import { word } from '../../filter/filter.ts';
import { countText, durationText } from '../duration.ts';
import { Fragment, h } from '../html.ts';
import { ActionForm } from '../parts/action-form.tsx';
import { Empty } from '../parts/empty.tsx';
import { Page, SlowPage } from '../parts/layout.tsx';
import { GroupLimitForm, isOfSecretGroup, LimitForm, nameOf } from '../parts/limit-form.tsx';
import { Ago } from '../parts/moment.tsx';
import { Shown } from '../parts/shown.tsx';
import { TableHead } from '../parts/table-head.tsx';
import { Foreign, visible } from '../parts/text.tsx';
import { hasQueue, isPlain, LOOK_MS, may, scopeName, type Visit } from '../visit.ts';

const PAGE = 100;
const STOPPED_BY = { limit: 'at its limit', rate: 'rate used up', order: 'in order', handler: 'no handler' };

interface OfQueue {
  readonly queue: string;
  readonly limits: readonly LimitRecord[];
  readonly groups: readonly GroupRecord[];
  readonly more: boolean;
  /** Whether single groups may be given limits. */
  readonly grouped: boolean;
}

/** How many may run at once and how fast, and the groups that share it. */
export async function limitsPage(visit: Visit, limits: Limits) {
  const { searches, viewer } = visit;
  const names = [...limits.declared.keys()].filter((queue) => hasQueue(visit, queue)).sort();
  const name = JSON.stringify(['limits', scopeName(visit)]);
  const answer = await searches.at(viewer, name, LOOK_MS, (db) => limitsIn(db, limits, names));
  if (answer === undefined) return <SlowPage visit={visit} title="Limits" />;
  const { value: queues, at } = answer;
  return (
    <Page visit={visit} title="Limits" foundAt={at}>
      {queues.length === 0 ? (
        <section class="card">
          <Empty
            title="No limit is declared"
            code={'createQueue({ limits: limitsIn(tables, { mail: { concurrency: 10 } }) });'}
          />
        </section>
      ) : (
        queues.map((of) => <QueueLimitsOf visit={visit} of={of} />)
      )}
    </Page>
  );
}

async function limitsIn(db: Executor, limits: Limits, names: readonly string[]): Promise<OfQueue[]> {
  const queues: OfQueue[] = [];
  for (const queue of names) {
    const list = await limits.list(db, { queue, limit: PAGE });
    const groups = limits.isGrouped(queue) ? await limits.groups(db, { queue, limit: PAGE }) : undefined;
    queues.push({
      queue,
      limits: list.limits,
      groups: groups?.groups ?? [],
      grouped: limits.declared.get(queue)?.groups !== undefined,
      more: list.nextCursor !== undefined || groups?.nextCursor !== undefined,
    });
  }
  return queues;
}

function QueueLimitsOf({
  visit,
  of: { queue, limits, groups, more, grouped },
}: {
  readonly visit: Visit;
  readonly of: OfQueue;
}) {
  const changing = may(visit, 'limit');
  return (
    <section class="card" aria-label={`Limits of ${visible(queue)}`}>
      <h2>
        <Foreign text={queue} mono />
      </h2>
      <table class="rows">
        <TableHead
          columns={[
            'Limit of',
            'Declared',
            'Set',
            { number: 'In use' },
            ...(changing ? [{ unseen: 'Actions' }] : []),
          ]}
        />
        <tbody>
          {limits.map((limit) => (
            <tr>
              <td>
                {isOfSecretGroup(visit, limit) ? (
                  <>
                    group <Shown visit={visit} field="group" text={limit.group ?? ''} />
                  </>
                ) : (
                  <Foreign text={nameOf(limit)} />
                )}
              </td>
              <td data-name="declared">
                {settingsText(limit.declared)}
                {limit.declared.serial ? ', one after the other' : ''}
              </td>
              <td data-name="set">
                {limit.override === undefined ? <span class="muted">–</span> : settingsText(limit.override)}
              </td>
              <td class="number" data-name="in use">
                {limit.slots ?? <span class="muted">–</span>}
              </td>
              {changing ? (
                <td>
                  <LimitForm visit={visit} limit={limit} />
                </td>
              ) : null}
            </tr>
          ))}
        </tbody>
      </table>
      {changing && grouped ? <GroupLimitForm visit={visit} queue={queue} /> : null}
      {groups.length === 0 ? null : (
        <table class="rows">
          <TableHead columns={['Group', 'State', { number: 'Running' }, { unseen: 'Actions' }]} />
          <tbody>
            {groups.map((group) => (
              <tr data-row>
                <td>
                  <GroupName visit={visit} queue={queue} group={group.group} />
                </td>
                <td>
                  {group.blockedBy === null ? (
                    <>
                      {group.stoppedBy === null ? group.state : STOPPED_BY[group.stoppedBy]}
                      {group.readyAt === null ? null : (
                        <span class="muted">
                          {' '}
                          <Ago at={group.readyAt} nowMs={visit.nowMs} />
                        </span>
                      )}
                    </>
                  ) : (
                    <span class="bad">
                      blocked by <a href={visit.links.job(group.blockedBy)}>#{group.blockedBy}</a>
                    </span>
                  )}
                </td>
                <td class="number" data-name="running">
                  {countText(group.running)}
                </td>
                <td class="number">
                  {group.blockedBy === null ||
                  !isPlain(visit, undefined, 'group', { text: group.group }) ? null : (
                    <ActionForm
                      visit={visit}
                      action="unblock"
                      fields={{ queue, group: group.group }}
                      label="Unblock"
                      of={`group ${group.group}`}
                    />
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {more ? <p class="note">The first {PAGE}, by name.</p> : null}
    </section>
  );
}

/** A link to the jobs of a group, where its name is shown as it is. */
function GroupName({
  visit,
  queue,
  group,
}: {
  readonly visit: Visit;
  readonly queue: string;
  readonly group: string;
}) {
  const name = <Shown visit={visit} field="group" text={group} mono />;
  if (!isPlain(visit, undefined, 'group', { text: group })) return name;
  return (
    <a class="row-link" href={visit.links.jobs(`${word('queue', queue)} ${word('group', group)}`)}>
      {name}
    </a>
  );
}

function settingsText(settings: LimitSettings & { readonly weight?: number | undefined }): string {
  const { concurrency, rate, weight } = settings;
  const parts = [
    concurrency === undefined ? undefined : `${concurrency} at once`,
    rate === undefined || rate === null ? undefined : `${rate.limit} in ${durationText(rate.perMs)}`,
    weight === undefined ? undefined : `weight ${weight}`,
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? 'none' : parts.join(', ');
}
