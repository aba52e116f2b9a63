import type { OwnColumns } from '../../core/schema/index.ts';
import type { JobDefinition, PayloadInput } from '../../index.ts';
import {
  checkDefinition,
  checkObject,
  checkOptions,
  type JobSettings,
  namesOf,
  shown,
} from '../../internal.ts';
import type { ForeignJob } from './foreign-job.ts';

/** What {@link ImportRule} may say of a job beside its payload; what it leaves out is carried over. */
export interface ImportedOptions extends JobSettings {
  /** @default when it is due there */
  runAt?: Date | undefined;
  /** At most 2,000 bytes; `undefined`: none. @default its key there, where that has a counterpart */
  uniqueKey?: string | undefined;
  /** How long the key refuses another job. @default as it is there */
  unique?: 'live' | 'waiting' | undefined;
  /** An imported job already has its time, and no caller here waits for it. */
  delayMs?: undefined;
  awaited?: undefined;
  debounce?: undefined;
  throttle?: undefined;
  replace?: undefined;
}

/** What the jobs of one name become. */
export interface ImportRule<
  TJob extends JobDefinition = JobDefinition,
  TOwn extends OwnColumns = OwnColumns,
> {
  /** Its schema checks the payload. A job that it refuses stays where it is, and is reported. */
  readonly job: TJob;
  /** Makes the payload. @default the payload there, as it is */
  payload?(data: unknown, job: ForeignJob): PayloadInput<TJob>;
  /**
   * What differs from what is carried over: a queue, a priority, a group, values of the app's own columns.
   * What it throws, like an error of `payload`, leaves the job where it is.
   */
  options?(job: ForeignJob): ImportedOptions & Partial<TOwn['insert']>;
}

/** What the jobs of each name become; those of other names stay where they are. */
export type ImportMapping<
  TJobs extends Readonly<Record<string, JobDefinition>> = Readonly<Record<string, JobDefinition>>,
  TOwn extends OwnColumns = OwnColumns,
> = { readonly [TName in keyof TJobs]: ImportRule<TJobs[TName], TOwn> };

const RULE = namesOf<ImportRule>({ job: true, payload: true, options: true });

/** @throws TypeError naming the rule that is wrong */
export function checkMapping(given: ImportMapping): ReadonlyMap<string, ImportRule> {
  checkObject('importJobs: the mapping', given);
  const rules = new Map(Object.entries(given));
  if (rules.size === 0) {
    throw new TypeError(
      "importJobs: the mapping is empty; pass an entry such as { 'send-email': { job: sendEmail } }",
    );
  }
  for (const [name, rule] of rules) {
    const what = `importJobs: the mapping of '${name}'`;
    checkOptions(what, rule, RULE);
    checkDefinition(what, rule.job);
    for (const option of ['payload', 'options'] as const) {
      const value = rule[option];
      if (value !== undefined && typeof value !== 'function') {
        throw new TypeError(`${what}: ${option} must be a function, got ${shown(value)}`);
      }
    }
  }
  return rules;
}
