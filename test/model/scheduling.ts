import { defineSchedule, QueueError } from 'drizzle-queue';
import { expect } from 'vitest';
import { WorkerEmitter } from '../../src/core/worker/base/events.ts';
import type { NewSchedule } from '../../src/features/schedules/sql/stored-schedule.ts';
import { Firing } from '../../src/features/schedules/worker/firing.ts';
import { definitionOf } from './endings.ts';
import type { Doings, Happenings, SingleStep } from './happenings.ts';
import { oneOf } from './one-of.ts';
import { FIRST_TICK_MS, type ModelSchedule, type NewModelSchedule } from './schedule-model.ts';
import type { World } from './world.ts';

const definitionOfSchedule = ({ name, kind, everyMs, catchUp, overlap, ...options }: NewModelSchedule) =>
  defineSchedule(name, {
    job: definitionOf(kind),
    every: everyMs,
    startsAt: new Date(FIRST_TICK_MS),
    catchUp,
    overlap,
    options,
  });

/** How schedules are set, declared, changed and fired. */
export function scheduling(
  world: World,
): Pick<Doings, 'setSchedule' | 'changeSchedule' | 'runSchedule' | 'missTicks' | 'fire' | 'fireWhile'> {
  const { app, queue, model, schedules, workerIds, workers, saw } = world;

  /** Enqueues what a schedule enqueues, unless that must not overlap with what is live; answers whether. */
  function enqueue(
    { name, queue, kind, priority, maxAttempts, overlap }: ModelSchedule,
    id: number | undefined,
  ) {
    const uniqueKey = overlap ? null : `schedule:${name}`;
    if (model.standing(queue, kind, uniqueKey) !== undefined) {
      saw('a job of a schedule that must not overlap');
      return false;
    }
    if (id === undefined) throw new Error(`no job of '${name}' was enqueued`);
    for (const known of model.jobs.keys()) expect(id, 'ids grow').toBeGreaterThan(known);
    model.enqueue({ id, queue, kind, priority, maxAttempts, uniqueKey, runAt: { delayMs: 0 } });
    return true;
  }

  async function fire(
    { worker, kinds, declares }: Happenings['fire'],
    between: readonly SingleStep[] = [],
  ): Promise<void> {
    await world.compare();
    const startUs = world.nowUs;
    const workerId = oneOf(workerIds, worker);
    const names = new Set(declares.map(({ name }) => name));
    const due = () => schedules.due(names, kinds, world.nowUs);
    const expected = new Map<string, { readonly schedule: ModelSchedule; readonly ticks: number[] }>();
    let hasDeclared = declares.length === 0;
    let looks = 0;
    let moved = 0;
    const declare = () => {
      hasDeclared = true;
      if (
        !schedules.declare(declares, workerId, model.livingWorkers, { nowUs: world.nowUs, sinceUs: startUs })
      )
        saw('a declaration that waits for a tick');
    };
    const found = async () => {
      await world.learn();
      // After it has fired all that was due, and what it could not fire, a worker declares.
      if (!hasDeclared && (due().length === 0 || (looks > 0 && moved === 0))) {
        declare();
        await world.learn();
      }
      const seen = due().map((schedule) => ({ schedule, version: schedule.version }));
      if (looks++ === 0) {
        await world.takeAll(between);
        await world.compare();
      }
      moved = 0;
      for (const { schedule, version } of seen) {
        const { name, paused } = schedule;
        if (schedules.schedules.get(name)?.version !== version || paused) {
          saw('a schedule that has changed is not fired');
          continue;
        }
        moved++;
        const ticks = schedules.fire(schedule, world.nowUs, startUs);
        if (ticks.length > 0) expected.set(name, { schedule, ticks });
        if (ticks.length > 1) saw('several ticks fired');
      }
    };
    const events = new WorkerEmitter();
    const failures: unknown[] = [];
    events.on('error', ({ error }) => failures.push(error));
    const fired: Promise<void>[] = [];
    events.on('fired', ({ schedule: name, ticks, ids }) => {
      const { schedule, ticks: due } = expected.get(name) ?? {};
      expected.delete(name);
      expect(
        ticks.map((tick) => tick.getTime()),
        name,
      ).toEqual(due);
      if (schedule === undefined) return;
      const left = [...ids];
      const enqueued = ticks.filter(() => enqueue(schedule, left[0]) && left.shift() !== undefined);
      expect(left).toEqual([]);
      saw('a tick fired');
      fired.push(expectTicks(ids, name, enqueued));
    });
    const stored = await Promise.all(
      declares.map((schedule) => queue.schedules.toStore('model', definitionOfSchedule(schedule))),
    );
    const firing = new Firing({
      db: oneOf(workers, worker).db,
      tables: world.scheduleTables,
      channel: undefined,
      workerId,
      declared: stored as NewSchedule[],
      kinds,
      listener: { listening: true },
      events,
      retries: { sleep: async () => false },
    });
    await world.interrupted(() => firing.look(), { 'schedules: found': found });
    if (!hasDeclared) {
      await world.learn();
      declare();
    }
    expect(failures).toEqual([]);
    expect([...expected.keys()], 'ticks that have not fired').toEqual([]);
    await Promise.all(fired);
  }

  /** The jobs say of which ticks they are. */
  async function expectTicks(ids: readonly number[], name: string, ticks: readonly Date[]): Promise<void> {
    const rows = await app.client<{ metadata: unknown }[]>`
      select metadata from queue_jobs where id = any(${[...ids]}::bigint[]) order by id`;
    expect(rows.map(({ metadata }) => metadata)).toEqual(
      ticks.map((tick) => ({ schedule: name, tick: tick.toISOString() })),
    );
  }

  const anySchedule = (index: number) => {
    const all = [...schedules.schedules.values()];
    return all.length === 0 ? undefined : oneOf(all, index);
  };

  return {
    setSchedule: async ({ schedule }) => {
      const set = queue.schedules.set(app.db, definitionOfSchedule(schedule));
      if (schedules.set(schedule)) expect(await set).toMatchObject({ name: schedule.name, declared: false });
      else {
        await expect(set).rejects.toBeInstanceOf(QueueError);
        saw('a declared schedule that is not set');
      }
    },

    changeSchedule: async ({ schedule, change }) => {
      const name = anySchedule(schedule)?.name ?? 'none';
      if (change === 'remove') {
        expect(await queue.schedules.remove(app.db, name)).toBe(schedules.remove(name));
        return;
      }
      const expected = schedules.pause(name, change === 'pause');
      const changed = queue.schedules[change](app.db, name);
      if (expected === undefined) await expect(changed).rejects.toBeInstanceOf(QueueError);
      else expect(await changed).toBe(expected);
      if (expected) saw(`a schedule: ${change}`);
    },

    runSchedule: async ({ schedule: index }) => {
      const schedule = anySchedule(index);
      if (schedule === undefined) return;
      const standing = model.standing(
        schedule.queue,
        schedule.kind,
        schedule.overlap ? null : `schedule:${schedule.name}`,
      );
      const { id, duplicate } = await queue.schedules.runNow(app.db, schedule.name);
      expect(duplicate).toBe(standing !== undefined);
      if (standing !== undefined) expect(id).toBe(standing.id);
      enqueue(schedule, id);
    },

    missTicks: async ({ schedule: index, days }) => {
      // It goes by times that the model may not know yet.
      await world.compare();
      const schedule = anySchedule(index);
      if (schedule === undefined) return;
      const { passedMs, nextMs } = schedules.miss(schedule, days);
      await app.client`
        update queue_schedules set revision = revision + 1, passed_at = ${new Date(passedMs).toISOString()},
          next_at = ${new Date(nextMs).toISOString()} where name = ${schedule.name}`;
    },

    fire: (by) => fire(by),
    fireWhile: ({ by, found }) => fire(by, found),
  };
}
