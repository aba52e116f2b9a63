/** What is promised of groups and their limits, as plain data: written from its documentation, without the tables of limits. */
import type { LimitOverride, Rate } from 'drizzle-queue';
import type { DeclaredQueueLimits } from '../../src/features/limits/settings/limit-settings.ts';
import type { ModelJob } from './model-job.ts';
import { RateModel } from './rate-model.ts';

/** The group of jobs without one. */
export const NO_GROUP = '-';

/** Which limit: of a kind, of a group, of every group (`'*'`), or of the whole queue. */
export interface LimitOf {
  readonly kind?: string | undefined;
  readonly group?: string | undefined;
}

/** A job that stops those behind it in its group. */
interface Stop {
  readonly queue: string;
  readonly group: string;
  /** Microseconds since 1970: some time between these, or a delay from the statement that has just been run. */
  until: { readonly fromUs: number; readonly toUs: number } | { readonly delayMs: number };
}

const FOR_GOOD = { fromUs: Number.POSITIVE_INFINITY, toUs: Number.POSITIVE_INFINITY };

interface KnownRate {
  readonly queue: string;
  readonly of: LimitOf;
  readonly model: RateModel;
  /** As it was at the last look. */
  rate: Rate | undefined;
}

/** What a start counts against. */
export interface RateInForce {
  readonly rate: Rate;
  readonly model: RateModel;
}

export class GroupModel {
  /** What was set at run time, by {@link nameOf}. */
  readonly overrides = new Map<string, LimitOverride>();
  readonly #declared: Readonly<Record<string, DeclaredQueueLimits>>;
  readonly #stops = new Map<number, Stop>();
  readonly #rates = new Map<string, KnownRate>();

  constructor(declared: Readonly<Record<string, DeclaredQueueLimits>>) {
    this.#declared = declared;
  }

  /** The queues that have groups. */
  get queues(): string[] {
    return Object.keys(this.#declared);
  }

  isGrouped(queue: string): boolean {
    return queue in this.#declared;
  }

  declaredOf(queue: string): DeclaredQueueLimits {
    return this.#declared[queue] ?? {};
  }

  serialOf(queue: string) {
    return this.#declared[queue]?.groups?.serial;
  }

  /** Sets a limit, or with `null` removes what was set. */
  set(queue: string, of: LimitOf, override: LimitOverride | null, nowUs: number): void {
    if (override === null) this.overrides.delete(nameOf(queue, of));
    else this.overrides.set(nameOf(queue, of), override);
    for (const known of this.#rates.values()) {
      const { model, rate: before } = known;
      const rate = this.#rateOf(known.queue, known.of);
      if (rate === undefined) model.forget();
      // Of a longer window it is known only what was in the shorter one.
      else if (before !== undefined && rate.perMs > before.perMs)
        model.forgetBefore(nowUs - before.perMs * 1_000);
      known.rate = rate;
    }
  }

  /** How many jobs of a group may be held. */
  concurrencyOf(queue: string, group: string): number {
    if (this.serialOf(queue) !== undefined) return 1;
    return this.#ofGroup(queue, group, 'concurrency') ?? Number.POSITIVE_INFINITY;
  }

  /** The rates that the claim of a job counts against: that of its group. */
  ratesOf({ queue, group }: Pick<ModelJob, 'queue' | 'group'>): RateInForce[] {
    return (group === null ? [] : [{ group }]).flatMap((of) => {
      const rate = this.#rateOf(queue, of);
      return rate === undefined ? [] : { rate, model: this.#rateModel(queue, of, rate) };
    });
  }

  /** Where a job's group waits for it, that waits for so long from now; answers whether it keeps its place. */
  waitFor({ id, queue, group }: ModelJob, delayMs: number): boolean {
    const serial = this.serialOf(queue);
    if (serial !== 'end' && serial !== 'success') return false;
    if (group !== null) this.#stops.set(id, { queue, group, until: { delayMs } });
    return true;
  }

  /** A job was discarded, which may stop its group for good. */
  stop({ id, queue, group }: ModelJob): void {
    if (group === null || this.serialOf(queue) !== 'success') return;
    this.#stops.set(id, { queue, group, until: FOR_GOOD });
  }

  /** A job stops its group no longer; answers whether it had stopped it for good. */
  goOn({ id }: ModelJob): boolean {
    const stop = this.#stops.get(id);
    this.#stops.delete(id);
    return stop?.until === FOR_GOOD;
  }

  /** Lets a group go on that was stopped for good; answers whether it was. */
  unblock(queue: string, group: string): boolean {
    const blocking = this.#blocking(queue, group);
    for (const id of blocking) this.#stops.delete(id);
    return blocking.length > 0;
  }

  /** The job that stops a group for good. */
  blockedBy(queue: string, group: string): number | null {
    const blocking = this.#blocking(queue, group);
    return blocking.length === 0 ? null : Math.min(...blocking);
  }

  /** The groups that are stopped for good. */
  blocked(queue: string): string[] {
    const stops = [...this.#stops.values()];
    return stops.flatMap(({ queue: of, group, until }) =>
      of === queue && until === FOR_GOOD ? [group] : [],
    );
  }

  /** Delays count from a statement that was run between these times. */
  learn(earlierUs: number, nowUs: number): void {
    for (const stop of this.#stops.values()) {
      if (!('delayMs' in stop.until)) continue;
      const delayUs = stop.until.delayMs * 1_000;
      stop.until = { fromUs: earlierUs + delayUs, toUs: nowUs + delayUs };
    }
  }

  /** Whether a job stops a group at a time: surely, perhaps, or surely not. */
  stopped(queue: string, group: string, atUs: number): 'yes' | 'perhaps' | 'no' {
    const untils = [...this.#stops.values()]
      .filter((stop) => stop.queue === queue && stop.group === group)
      .map(({ until }) => {
        if ('delayMs' in until) throw new Error('the time of a stop is not known yet');
        return until;
      });
    if (untils.some(({ fromUs }) => fromUs > atUs)) return 'yes';
    return untils.some(({ toUs }) => toUs >= atUs) ? 'perhaps' : 'no';
  }

  #blocking(queue: string, group: string): number[] {
    return [...this.#stops]
      .filter(([, stop]) => stop.queue === queue && stop.group === group && stop.until === FOR_GOOD)
      .map(([id]) => id);
  }

  #rateOf(queue: string, of: LimitOf): Rate | undefined {
    if (of.group !== undefined) return this.#ofGroup(queue, of.group, 'rate');
    const declared = this.#declared[queue] ?? {};
    const rate = of.kind === undefined ? declared.rate : declared.kinds?.[of.kind]?.rate;
    // Workers ask only for what their code declares.
    return rate && (this.overrides.get(nameOf(queue, of))?.rate ?? rate);
  }

  #ofGroup<K extends 'concurrency' | 'rate'>(queue: string, group: string, key: K): LimitOverride[K] {
    const own = this.overrides.get(nameOf(queue, { group }));
    const every = this.overrides.get(nameOf(queue, { group: '*' }));
    return own?.[key] ?? every?.[key] ?? this.#declared[queue]?.groups?.[key];
  }

  #rateModel(queue: string, of: LimitOf, rate: Rate): RateModel {
    const name = nameOf(queue, of);
    const known = this.#rates.get(name) ?? { queue, of, model: new RateModel(), rate };
    this.#rates.set(name, known);
    return known.model;
  }
}

export function nameOf(queue: string, { kind = '', group = '' }: LimitOf): string {
  return JSON.stringify([queue, kind, group]);
}
