import { checkOptions, namesOf } from '../../../core/job/known-options.ts';
import { checkInteger, checkText, MAX_NAME_BYTES } from '../../../core/job/limits.ts';
import { shown } from '../../../core/job/shown.ts';
import type { LimitOverride, LimitPlace } from './limit-record.ts';
import {
  checkLimitSettings,
  type DeclaredQueueLimits,
  heedsConcurrency,
  limitsOfKind,
} from './limit-settings.ts';

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

const NAMES = namesOf<Record<'queue' | 'kind' | 'group', unknown>>({ queue: true, kind: true, group: true });
const OVERRIDE = namesOf<LimitOverride>({ concurrency: true, rate: true, weight: true });

/**
 * The limit of that name.
 *
 * @throws TypeError for a limit that no worker would obey, since the code does not declare its queue, its
 * kind or any groups: a worker does not ask for limits that it does not know
 */
export function limitNameOf(
  caller: string,
  name: QueueName & { readonly kind?: unknown; readonly group?: unknown },
  declared: ReadonlyMap<string, DeclaredQueueLimits>,
): LimitPlace {
  const { queue, ...within } = checkOptions(`${caller}: which limit`, name, NAMES);
  checkText(`${caller}: queue`, queue, MAX_NAME_BYTES);
  const undeclared = (what: string, declaration: string) =>
    new TypeError(
      `${caller}: the ${what} has no declared limits, so workers would ignore this one. ` +
        `Declare it, limitsIn(…, { ${keyOf(queue)}: ${declaration} })`,
    );
  const limits = declared.get(queue);
  if (limits === undefined) throw undeclared(`queue '${queue}'`, '{}');
  if (within.kind !== undefined && within.group !== undefined) {
    throw new TypeError(`${caller}: kind and group cannot be combined: groups belong to the whole queue`);
  }
  // Checked here, as of callers without TypeScript.
  const textOf = (part: 'kind' | 'group') =>
    within[part] === undefined
      ? undefined
      : checkText(`${caller}: ${part}`, within[part] as string, MAX_NAME_BYTES);
  const kind = textOf('kind');
  const group = textOf('group');
  if (kind !== undefined && limitsOfKind(limits, kind) === undefined) {
    throw undeclared(`kind '${kind}'`, `{ kinds: [${shown(kind)}] }`);
  }
  if (group !== undefined && limits.groups === undefined) {
    throw new TypeError(
      `${caller}: the queue '${queue}' has no groups: declare them, ` +
        `limitsIn(…, { ${keyOf(queue)}: { groups: 'fair' } })`,
    );
  }
  return { queue, kind, group, limits };
}

/** @throws RangeError | TypeError for a setting that is wrong, or that has no effect there */
export function checkOverride(
  caller: string,
  { queue, kind, group, limits }: LimitPlace,
  override: LimitOverride,
): LimitOverride {
  const what = `${caller}: the limit`;
  checkOptions(what, override, OVERRIDE);
  const checked = checkLimitSettings(what, override);
  const { concurrency, rate, weight = null } = checked;
  if (concurrency === undefined && rate === undefined && weight === null) {
    throw new TypeError(`${what} sets nothing; pass null to remove what was set before`);
  }
  if (weight !== null) {
    checkInteger(`${what}: weight`, weight, 1, 1_000);
    if (group === undefined) {
      throw new TypeError(`${what}: weight applies to groups: name one, or '*' for all`);
    }
  }
  if (concurrency !== undefined && group !== undefined && limits.groups?.serial !== undefined) {
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
    const declared = kind === undefined ? limits : limitsOfKind(limits, kind);
    if (concurrency !== undefined && !heedsConcurrency(limits, kind)) throw unheeded('concurrency');
    if (rate !== undefined && declared?.rate === undefined) throw unheeded('rate');
  }
  return checked;
}

/** As a key of an object literal. */
function keyOf(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : shown(name);
}
