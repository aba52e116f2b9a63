import { clearTables } from '../queries/support/jobs.ts';
import { claiming } from './claiming.ts';
import { drain } from './draining.ts';
import { enqueueing } from './enqueueing.ts';
import { enqueueingByRule } from './enqueueing-by-rule.ts';
import type { Doings, SingleStep, Step } from './happenings.ts';
import { inspecting } from './inspecting.ts';
import { limiting } from './limiting.ts';
import { living, register } from './living.ts';
import { scheduling } from './scheduling.ts';
import { settling } from './settling.ts';
import { settlingBatch } from './settling-batch.ts';
import { World, type WorldOptions } from './world.ts';

const CONTROL_TABLES = [
  'queue_schedules',
  'queue_groups',
  'queue_notes',
  'queue_holds',
  'queue_limits',
  'queue_usage',
  'queue_keys',
];

/** One walk through the lives of jobs: everything is done to the model and to the database, and the two are compared. */
export class Walk {
  readonly #world: World;
  readonly #doings: Doings;

  constructor(options: Omit<WorldOptions, 'takeAll'>) {
    const world = new World({ ...options, takeAll: (steps) => this.#takeAll(steps) });
    this.#world = world;
    this.#doings = {
      ...enqueueing(world),
      ...claiming(world),
      ...settling(world),
      ...settlingBatch(world),
      ...inspecting(world),
      ...living(world),
      ...scheduling(world),
      ...limiting(world),
      ...enqueueingByRule(world),
    };
  }

  /** Begins with empty tables. */
  async begin(): Promise<void> {
    const { app, workers } = this.#world;
    await clearTables(app.client);
    await app.client.unsafe(CONTROL_TABLES.map((table) => `delete from ${table}`).join(';'));
    for (const index of workers.keys()) await register(this.#world, index);
    await this.#world.compare();
  }

  async take({ happens, to }: Step): Promise<void> {
    // What it happens to belongs to what happens; TypeScript does not carry the pair through the lookup.
    await (this.#doings[happens] as (to: unknown) => Promise<void>)(to);
    await this.#world.compare();
  }

  /** Ends with queues that have run empty, where they have groups. */
  async end(options: Parameters<typeof drain>[1]): Promise<void> {
    await drain(this.#world, options);
    await this.#world.compare();
  }

  async #takeAll(steps: readonly SingleStep[]): Promise<void> {
    for (const step of steps) await this.take(step);
  }
}
