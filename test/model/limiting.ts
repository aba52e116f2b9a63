import type { LimitOverride } from 'drizzle-queue';
import { expect } from 'vitest';
import { adoptJobs, MAX_ADOPTED } from '../../src/features/limits/queries/adopt-jobs.ts';
import { noteForgottenGroups, noteFreedGroups } from '../../src/features/limits/queries/note-groups.ts';
import { pruneGroups } from '../../src/features/limits/queries/prune-groups.ts';
import { passMinutes } from './clock.ts';
import { type LimitOf, NO_GROUP, nameOf } from './group-model.ts';
import { groupsOf, heldIn } from './group-rules.ts';
import type { Doings, Happenings, SingleStep } from './happenings.ts';
import type { World } from './world.ts';

type LimitStep = Happenings['setLimit']['limit'];

/** How limits of groups are set and looked at, and what workers do for groups beside their claims. */
export function limiting(
  world: World,
): Pick<
  Doings,
  'setLimit' | 'setLimitWhile' | 'unblock' | 'lookAtLimits' | 'lookAfterGroups' | 'timePasses'
> {
  const { app, queue, transaction, model, saw } = world;
  const [name = ''] = model.groups.queues;

  /** What of an override the queue heeds; `undefined`: nothing. */
  function heeded({ of, override }: LimitStep): { of: LimitOf; override: LimitOverride | null } | undefined {
    const { groups, rate, kinds } = model.groups.declaredOf(name);
    if (of === 'queue' || of === 'kind') {
      const place = of === 'queue' ? {} : { kind: 'kept' };
      if ((of === 'queue' ? rate : kinds?.kept?.rate) === undefined) return undefined;
      if (override === null) return { of: place, override };
      return 'rate' in override ? { of: place, override: { rate: override.rate } } : undefined;
    }
    if (groups === undefined) return undefined;
    if (override === null || groups.serial === undefined) return { of: { group: of }, override };
    const { concurrency: _, ...rest }: LimitOverride = override;
    return Object.keys(rest).length === 0 ? undefined : { of: { group: of }, override: rest };
  }

  async function setLimit(
    limit: LimitStep,
    commit: boolean,
    meanwhile: readonly SingleStep[],
  ): Promise<void> {
    const { of, override } = heeded(limit) ?? {};
    if (of === undefined || override === undefined) return;
    const place = 'kind' in of ? { kind: String(of.kind) } : 'group' in of ? { group: String(of.group) } : {};
    const undo = new Error('undo');
    const setting = transaction.db.transaction(async (tx) => {
      const { override: set } = await queue.limits.set(tx, { queue: name, ...place }, override);
      expect(set).toEqual(override ?? undefined);
      await world.whileLocked([], meanwhile);
      if (!commit) throw undo;
    });
    if (commit) await setting;
    else await expect(setting).rejects.toBe(undo);
    if (commit) model.groups.set(name, of, override, world.nowUs);
    saw(commit ? (override === null ? 'a limit removed' : 'a limit set') : 'a limit not set');
  }

  return {
    setLimit: ({ limit, commit }) => setLimit(limit, commit, []),
    setLimitWhile: ({ limit, commit, set }) => setLimit(limit, commit, set),

    unblock: async ({ group: any, stopped }) => {
      if (model.groups.declaredOf(name).groups === undefined) return;
      const group = (stopped ? model.groups.blocked(name)[0] : undefined) ?? any;
      const undo = new Error('undo');
      const expected = model.groups.blockedBy(name, group) !== null;
      // Groups are seldom stopped, so each is let go on twice: first in a transaction that rolls back.
      const undone = transaction.db.transaction(async (tx) => {
        expect(await queue.limits.unblock(tx, { queue: name, group })).toBe(expected);
        throw undo;
      });
      await expect(undone).rejects.toBe(undo);
      expect(await queue.limits.unblock(transaction.db, { queue: name, group })).toBe(expected);
      model.groups.unblock(name, group);
      if (expected) saw('a group unblocked');
    },

    lookAtLimits: async ({ page }) => {
      // It goes by times that the model may not know yet.
      await world.compare();
      const groups: { group: string; running: number; blockedBy: number | null }[] = [];
      for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
        const list = await queue.limits.groups(app.db, { queue: name, limit: page, cursor });
        groups.push(...list.groups.map(({ group, running, blockedBy }) => ({ group, running, blockedBy })));
        cursor = list.nextCursor;
      }
      for (const { group, running, blockedBy } of groups) {
        expect(running, `running of '${group}'`).toBe(heldIn(model, name, group));
        expect(blockedBy, `what stops '${group}'`).toBe(model.groups.blockedBy(name, group));
        if (running > 0) saw('a group listed that runs');
        if (blockedBy !== null) saw('a group listed that is stopped');
      }
      const names = groups.map(({ group }) => group);
      expect(names).toEqual([...names].sort());
      for (const group of groupsOf(model, name))
        if (heldIn(model, name, group) > 0) expect(names).toContain(group);

      const { limits } = await queue.limits.list(app.db, { queue: name });
      const set = limits.filter(({ override }) => override !== undefined);
      expect(
        new Map(set.map(({ kind, group, override }) => [nameOf(name, { kind, group }), override])),
      ).toEqual(model.groups.overrides);
    },

    lookAfterGroups: async ({ forgotten }) => {
      const { tables, limits } = world.groupsOf(name);
      await noteFreedGroups(app.db, tables, name);
      if (forgotten) await noteForgottenGroups(app.db, tables, name, '');
      await pruneGroups(app.db, tables, { queue: name, after: '', ratePerMs: limits.rate?.perMs });
      let adopted = 0;
      for (let more = MAX_ADOPTED; more === MAX_ADOPTED; adopted += more)
        more = await adoptJobs(app.db, tables, name);
      const waiting = model.live.filter(
        ({ queue, group, workerId }) =>
          queue === name && group === null && (workerId === null || !model.livingWorkers.has(workerId)),
      );
      for (const job of waiting) job.group = NO_GROUP;
      expect(adopted).toBe(waiting.length);
      if (adopted > 0) saw('jobs adopted');
    },

    timePasses: async ({ minutes }) => {
      // Until now.
      await world.compare();
      await passMinutes(app, minutes);
    },
  };
}
