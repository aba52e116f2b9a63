import { given } from '../../../core/job/known-options.ts';
import { type DeclaredQueueLimits, type LimitSettings, limitsOfKind, type Serial } from './limit-settings.ts';

/** What can be set at run time. A setting that is left out is as the code declares it. */
export interface LimitOverride extends LimitSettings {
  /** How much of the queue's turns a group gets beside others, 1–1,000; only with `group`. @default 1 */
  weight?: number | undefined;
}

/** A limit that was set at run time. */
export interface StoredLimit {
  /** '' for the queue and its groups. */
  readonly kind: string;
  /** '' for the queue and its kinds, '*' for every group. */
  readonly group: string;
  readonly override: LimitOverride;
  readonly setAt: Date;
}

/** A limit as it is declared, as it was set, and what is in use of it. */
export interface LimitRecord {
  readonly queue: string;
  /** The kind that it is of; `undefined` when it is not of a kind. */
  readonly kind: string | undefined;
  /** The group that it is of, `'*'` for each group; `undefined` when it is of the queue or of a kind. */
  readonly group: string | undefined;
  /** What the code declares; a single group has what `'*'` has. */
  readonly declared: LimitSettings & { readonly serial?: Serial | undefined };
  /** What was set at run time, in the place of that; `undefined` when nothing was. */
  readonly override: LimitOverride | undefined;
  /** When that was set. */
  readonly setAt: Date | undefined;
  /** Slots that living workers have of the concurrency of a queue or a kind; of groups always `undefined`. */
  readonly slots: number | undefined;
}

/** Which limit: of a queue, of a kind in it, or of its groups; and what the code declares for the queue. */
export interface LimitPlace {
  readonly queue: string;
  readonly kind: string | undefined;
  readonly group: string | undefined;
  readonly limits: DeclaredQueueLimits;
}

/** The limit of a place, given what was set there, and which slots workers have of it. */
export function toLimitRecord(
  { queue, kind, group, limits }: LimitPlace,
  set: StoredLimit | undefined,
  slots?: number,
): LimitRecord {
  return {
    queue,
    kind,
    group,
    declared: declaredOf(limits, kind, group),
    override: set?.override,
    setAt: set?.setAt,
    slots,
  };
}

function declaredOf(limits: DeclaredQueueLimits, kind?: string, group?: string): LimitRecord['declared'] {
  const { concurrency, rate, serial }: LimitRecord['declared'] =
    kind !== undefined
      ? (limitsOfKind(limits, kind) ?? {})
      : group !== undefined
        ? (limits.groups ?? {})
        : limits;
  return given({ concurrency, rate, serial });
}
