import { checkOptions, namesOf } from '../../../core/job/known-options.ts';
import { checkInteger, checkText, MAX_NAME_BYTES } from '../../../core/job/limits.ts';
import { shown } from '../../../core/job/shown.ts';
import type { LimitOverride, LimitPlace, LimitRow } from './limit-record.ts';
import { checkLimitSettings, type DeclaredQueueLimits, heedsConcurrency } from './limit-settings.ts';

/** A queue by its name. */
export interface QueueName {
  readonly queue: string;
}

/** Which limit: of the queue, of a `kind` in it, or of a `group`, where `'*'` stands for every group. */
export type LimitName = QueueName &
  (
    | { readonly kind?: undefined; readonly group?: undefined }
    | { readonly kind: string; readonly group?: undefined }
    | { readonly kind?: undefined; readonly group: string }
  );

/** A limit that the code knows of, with what it declares for the queue. */
export interface KnownPlace extends LimitPlace {
  readonly limits: DeclaredQueueLimits;
}

const NAMES = namesOf<Record<'queue' | 'kind' | 'group', unknown>>({ queue: true, kind: true, group: true });
const OVERRIDE = namesOf<LimitOverride>({ concurrency: true, rate: true, weight: true });

/** Refuses what names no limit. @throws TypeError */
export function checkLimitName(caller: string, name: LimitName): LimitName {
  return checkOptions(`${caller}: which limit`, name, NAMES);
}

/**
 * @throws TypeError for a limit that no worker would obey, since the code does not declare its queue, its
 * kind or any groups: a worker does not ask for limits that it does not know
 */
export function limitNameOf(
  caller: string,
  name: QueueName & { readonly kind?: unknown; readonly group?: unknown },
  declared: ReadonlyMap<string, DeclaredQueueLimits>,
): KnownPlace {
  const { queue, kind, group } = name;
  checkText(`${caller}: queue`, queue, MAX_NAME_BYTES);
  const limits = declared.get(queue);
  if (limits === undefined) {
    throw new TypeError(
      `${caller}: the queue '${queue}' has no declared limits, so workers would ignore this one. ` +
        `Declare it, limitsIn(…, { ${keyOf(queue)}: {} })`,
    );
  }
  if (kind !== undefined && group !== undefined) {
    throw new TypeError(`${caller}: kind and group cannot be combined: groups belong to the whole queue`);
  }
  if (kind !== undefined) {
    // Checked next, as of callers without TypeScript.
    const named = checkText(`${caller}: kind`, kind as string, MAX_NAME_BYTES);
    if (limits.kinds?.[named] !== undefined) return { queue, kind: named, group: undefined, limits };
    throw new TypeError(
      `${caller}: the kind '${named}' has no declared limits, so workers would ignore this one. ` +
        `Declare it, limitsIn(…, { ${keyOf(queue)}: { kinds: [${shown(named)}] } })`,
    );
  }
  if (group === undefined) return { queue, kind: undefined, group: undefined, limits };
  const named = checkText(`${caller}: group`, group as string, MAX_NAME_BYTES);
  if (limits.groups !== undefined) return { queue, kind: undefined, group: named, limits };
  throw new TypeError(
    `${caller}: the queue '${queue}' has no groups: declare them, ` +
      `limitsIn(…, { ${keyOf(queue)}: { groups: 'fair' } })`,
  );
}

/** @throws RangeError | TypeError for a setting that is wrong, or that has no effect there */
export function overrideToSet(
  caller: string,
  { queue, kind, group, limits }: KnownPlace,
  override: LimitOverride,
): Pick<LimitRow, 'concurrency' | 'rateLimit' | 'ratePerMs' | 'weight'> {
  const what = `${caller}: the limit`;
  checkOptions(what, override, OVERRIDE);
  checkLimitSettings(what, override);
  const { concurrency = null, rate, weight = null } = override;
  if (concurrency === null && rate === undefined && weight === null) {
    throw new TypeError(`${what} sets nothing; pass null to remove what was set before`);
  }
  if (weight !== null) {
    checkInteger(`${what}: weight`, weight, 1, 1_000);
    if (group === undefined) {
      throw new TypeError(`${what}: weight applies to groups: name one, or '*' for all`);
    }
  }
  if (concurrency !== null && group !== undefined && limits.groups?.serial !== undefined) {
    throw new TypeError(
      `${what}: concurrency has no effect in the queue '${queue}': ` +
        `its groups are serial ('${limits.groups.serial}'), one at a time`,
    );
  }
  if (group === undefined) {
    const unheeded = (setting: string) => {
      const one = `${setting}: …`;
      const ofKind = kind === undefined ? one : `kinds: { ${keyOf(kind)}: { ${one} } }`;
      return new TypeError(
        `${what}: ${setting} has no effect, because the code declares limits here without ${setting}. ` +
          `Declare one, limitsIn(…, { ${keyOf(queue)}: { ${ofKind} } })`,
      );
    };
    const declared = kind === undefined ? limits : limits.kinds?.[kind];
    if (concurrency !== null && !heedsConcurrency(limits, kind)) throw unheeded('concurrency');
    if (rate !== undefined && declared?.rate === undefined) throw unheeded('rate');
  }
  return { concurrency, rateLimit: rate?.limit ?? null, ratePerMs: rate?.perMs ?? null, weight };
}

/** As a key of an object literal. */
function keyOf(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : shown(name);
}
