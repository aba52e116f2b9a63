import { countMany, findMany, type ManyJobs, withinTime } from '../../internal.ts';
import type { Telling } from '../filter/leave-refused.ts';
import { actOnMany, type ManyFlags } from './act-on-many.ts';
import type { Context } from './context.ts';
import type { ExitCode } from './exit-code.ts';
import { Failure } from './failure.ts';
import { searchOf } from './job-filter.ts';

type Sums = Readonly<Record<string, number>>;

const BATCH = 1_000;
/** How long one statement may take: a filter on payloads may read a whole table. */
const FIND_MS = 30_000;
const EVERYTHING = { queues: undefined, own: [] } as const;

/**
 * Does something with the jobs that the words of `--filter` find, by batches of their ids, oldest first. What
 * is enqueued after the beginning is not meant.
 *
 * @param act does it with some of them, leaves alone what is no longer so, and notes what is done
 * @param none the sums of nothing
 */
export async function actOnFound<TSums extends Sums>(
  context: Context<ManyFlags>,
  {
    name,
    action,
    none,
    act,
  }: {
    readonly name: string;
    readonly action: ManyJobs['action'];
    readonly none: TSums;
    act(ids: readonly number[], search: ManyJobs['search'], telling: Telling<TSums>): Promise<void>;
  },
): Promise<ExitCode> {
  const { project, flags } = context;
  const { db, queue } = project;
  const { tables } = queue;
  const { limit = Number.POSITIVE_INFINITY } = flags;
  const search = searchOf(queue, flags);
  const meant: ManyJobs = { action, search, scope: EVERYTHING, ids: undefined };
  const inTime = async <T>(look: () => Promise<T | undefined>): Promise<T> => {
    const found = await look();
    if (found !== undefined) return found;
    throw new Failure(`${name}: the search took longer than ${FIND_MS / 1_000} s; narrow --filter`);
  };
  const count = async () =>
    await inTime(() => withinTime(db, tables, FIND_MS, ({ runner }) => countMany(runner, tables, meant)));
  return await actOnMany(context, {
    name,
    count: async () => ({ jobs: Math.min((await count()).jobs, limit), isLeast: false }),
    run: async ({ signal, onProgress, refused }) => {
      const { until } = await count();
      let [sums, after, left] = [none, 0, limit];
      const note = (done: TSums) => {
        sums = added(sums, done);
        onProgress(sums);
      };
      const mayGoOn = () => {
        signal.throwIfAborted();
        return left > 0;
      };
      while (mayGoOn()) {
        const slice = { ...meant, after, until, limit: Math.min(BATCH, left) };
        const ids = await inTime(() =>
          withinTime(db, tables, FIND_MS, ({ runner }) => findMany(runner, tables, slice)),
        );
        const last = ids.at(-1);
        if (last === undefined) break;
        await act(ids, search, { note, refused, mayGoOn });
        [after, left] = [last, left - ids.length];
      }
      return sums;
    },
  });
}

/** Both have the same names. */
function added<TSums extends Sums>(one: TSums, other: TSums): TSums {
  const sums = Object.entries(one).map(([name, jobs]) => [name, jobs + (other[name] ?? 0)]);
  return Object.fromEntries(sums) as TSums;
}
