import { checkOptions, namesOf } from '../../../core/job/known-options.ts';
import {
  checkDurationMs,
  checkInteger,
  checkObject,
  checkText,
  MAX_NAME_BYTES,
} from '../../../core/job/limits.ts';
import { shown } from '../../../core/job/shown.ts';

/** At most `limit` starts in any window of `perMs` milliseconds. */
export interface Rate {
  /** 1 to 1,000,000: jobs, or their costs where they have some. */
  limit: number;
  /** 100 to one day (86,400,000), rounded to whole milliseconds. */
  perMs: number;
}

/** The limits of a queue, of a kind in it, or of each group of it. */
export interface LimitSettings {
  /** How many of its jobs may run at once, in all processes together, 1–1,000,000. @default no limit */
  concurrency?: number | undefined;
  /**
   * How many of its jobs may start, in all processes together. Priorities hold as without it. `runNext`
   * refuses the queue, as with any limit. Aging is refused beside limits of kinds and in queues with groups.
   * @default no limit
   */
  rate?: Rate | undefined;
}

/**
 * What the jobs of a group that run one after the other wait for.
 * - `attempt`: the end of the attempt before. A retry goes behind them.
 * - `end`: the end of the job before. A job that is retried keeps its place, and those behind it wait.
 * - `success`: its completion. Behind one that was discarded they wait until `queue.limits.unblock`, or until
 *   it was redriven.
 */
export type Serial = 'attempt' | 'end' | 'success';

/** The longest window of a rate. */
export const MAX_PER_MS = 86_400_000;

const SERIALS: ReadonlySet<unknown> = new Set<Serial>(['attempt', 'end', 'success']);

/** The limits of each group of a queue. */
export interface GroupSettings extends LimitSettings {
  /** Whether the jobs of a group run one after the other, in their order; not with `concurrency`. */
  serial?: Serial | undefined;
}

/** The limits of one queue. */
export interface QueueLimits extends LimitSettings {
  /**
   * The limits of single kinds in this queue. A list of names declares that each may be given a `concurrency`
   * at run time, as `{}` does for one.
   * @default none
   */
  kinds?: Readonly<Record<string, LimitSettings>> | readonly string[] | undefined;
  /**
   * Groups take turns; these are the limits of each. `'fair'` means shares alone, as `{}` does.
   * @default the queue has no groups
   */
  groups?: GroupSettings | 'fair' | undefined;
}

/** The same in its long form. */
export interface DeclaredQueueLimits extends LimitSettings {
  kinds?: Readonly<Record<string, LimitSettings>> | undefined;
  groups?: GroupSettings | undefined;
}

const OF_QUEUE = namesOf<QueueLimits>({ concurrency: true, rate: true, kinds: true, groups: true });
const OF_KIND = namesOf<LimitSettings>({ concurrency: true, rate: true });
const OF_GROUPS = namesOf<GroupSettings>({ concurrency: true, rate: true, serial: true });
const OF_RATE = namesOf<Rate>({ limit: true, perMs: true });

/** Whether the jobs of a queue are claimed by groups: one without a group of its own is in the group `-`. */
export function isGrouped({ groups }: DeclaredQueueLimits): boolean {
  return groups !== undefined;
}

/** Whether only so many jobs of a group may be held at once. */
export function boundsGroups({ concurrency, serial }: GroupSettings): boolean {
  return concurrency !== undefined || serial !== undefined;
}

/** Whether a job that is retried keeps its place, and those of its group wait for it. */
export function keepsPlace(serial: Serial | undefined): boolean {
  return serial === 'end' || serial === 'success';
}

/** What is declared of a kind, which may be called as what every object inherits. */
export function limitsOfKind({ kinds = {} }: DeclaredQueueLimits, kind: string): LimitSettings | undefined {
  return Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
}

/** Whether the queue, or a kind in it, has a rate. */
export function isRated({ rate, kinds = {} }: DeclaredQueueLimits): boolean {
  return rate !== undefined || Object.values(kinds).some((settings) => settings.rate !== undefined);
}

/**
 * Whether workers ask for a concurrency of the queue, or of a kind in it: where the code declares one, or
 * nothing else, so that one may be set at run time.
 */
export function heedsConcurrency(limits: DeclaredQueueLimits, kind?: string): boolean {
  const { concurrency, ...others } =
    kind === undefined ? limits : (limitsOfKind(limits, kind) ?? { rate: null });
  return concurrency !== undefined || Object.values(others).every((other) => other === undefined);
}

/** Whether a claimed job may have to wait although a slot is free. Groups alone decide what is claimed. */
export function holdsUp({ groups, ...limits }: DeclaredQueueLimits): boolean {
  return groups === undefined || Object.values(limits).some((limit) => limit !== undefined);
}

/** @throws RangeError | TypeError naming the setting that is wrong */
export function checkQueueLimits(queue: string, limits: QueueLimits): DeclaredQueueLimits {
  checkText('limitsIn: the name of a queue', queue, MAX_NAME_BYTES);
  const what = `limitsIn: '${queue}'`;
  checkOptions(what, limits, OF_QUEUE);
  const ofQueue = checkLimitSettings(what, limits);
  const given = isListOfNames(limits.kinds)
    ? Object.fromEntries(limits.kinds.map((kind) => [kind, {}]))
    : limits.kinds;
  const kinds =
    given === undefined
      ? undefined
      : Object.fromEntries(
          Object.entries(checkObject(`${what}: kinds`, given)).map(([kind, one]) => [
            kind,
            checkKind(what, kind, one),
          ]),
        );
  const groups = limits.groups === 'fair' ? {} : limits.groups;
  return {
    ...ofQueue,
    kinds,
    groups: groups === undefined ? undefined : checkGroups(`${what}: groups`, groups),
  };
}

function checkKind(what: string, kind: string, settings: LimitSettings): LimitSettings {
  checkText(`${what}: the name of a kind`, kind, MAX_NAME_BYTES);
  checkOptions(`${what}: kinds['${kind}']`, settings, OF_KIND);
  return checkLimitSettings(`${what}: kinds['${kind}']`, settings);
}

/** `Array.isArray` does not tell a readonly array from an object. */
function isListOfNames(kinds: QueueLimits['kinds']): kinds is readonly string[] {
  return Array.isArray(kinds);
}

/**
 * Returns them with the whole milliseconds that the database takes: it refuses a fraction each time that it
 * is asked for starts.
 *
 * @throws RangeError | TypeError naming the setting that is wrong
 */
export function checkLimitSettings<T extends LimitSettings>(what: string, settings: T): T {
  const { concurrency, rate } = settings;
  if (concurrency !== undefined) checkInteger(`${what}: concurrency`, concurrency, 1, 1_000_000);
  if (rate === undefined) return settings;
  checkOptions(`${what}: rate`, rate, OF_RATE);
  const limit = checkInteger(`${what}: rate.limit`, rate.limit, 1, 1_000_000);
  const perMs = checkDurationMs(`${what}: rate.perMs`, rate.perMs, 100, MAX_PER_MS);
  return { ...settings, rate: { limit, perMs } };
}

function checkGroups(what: string, groups: GroupSettings): GroupSettings {
  checkOptions(what, groups, OF_GROUPS);
  const checked = checkLimitSettings(what, groups);
  if (groups.serial === undefined) return checked;
  if (!SERIALS.has(groups.serial)) {
    throw new TypeError(`${what}.serial must be 'attempt', 'end' or 'success', got ${shown(groups.serial)}`);
  }
  if (groups.concurrency !== undefined) {
    throw new TypeError(`${what}: serial and concurrency cannot be combined: serial means one at a time`);
  }
  return checked;
}
