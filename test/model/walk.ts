import { clearTables } from '../queries/support/jobs.ts';
import { claiming } from './claiming.ts';
import { enqueueing } from './enqueueing.ts';
import type { Doings, SingleStep, Step } from './happenings.ts';
import { inspecting } from './inspecting.ts';
import { living, register } from './living.ts';
import { scheduling } from './scheduling.ts';
import { settling } from './settling.ts';
import { settlingBatch } from './settling-batch.ts';
import { World, type WorldOptions } from './world.ts';

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
    };
  }

  /** Begins with empty tables. */
  async begin(): Promise<void> {
    const { app, workers } = this.#world;
    await clearTables(app.client);
    await app.client`delete from queue_schedules`;
    for (const index of workers.keys()) await register(this.#world, index);
    await this.#world.compare();
  }

  async take({ happens, to }: Step): Promise<void> {
    // What it happens to belongs to what happens; TypeScript does not carry the pair through the lookup.
    await (this.#doings[happens] as (to: unknown) => Promise<void>)(to);
    await this.#world.compare();
  }

  async #takeAll(steps: readonly SingleStep[]): Promise<void> {
    for (const step of steps) await this.take(step);
  }
}
