import { checkDefinition, type JobDefinition } from '../job/definition.ts';
import { shown } from '../job/shown.ts';

/**
 * What the options of a worker must be besides: `unknown`, so anything, if each kind of its `jobs` has a
 * handler. Otherwise `handlers` must have a property that no list has, whose name is the sentence to read:
 * the compiler prints a missing property, but not the text that an array should have been. Kinds that are
 * known only at run time are checked then.
 */
export type EveryKind<THandled extends string, TKind extends string> = string extends TKind
  ? unknown
  : [Exclude<TKind, THandled>] extends [never]
    ? unknown
    : { readonly handlers: MissingHandlers<Exclude<TKind, THandled>> };

type MissingHandlers<TKind extends string> = {
  readonly [K in TKind as `There is no handler for '${K}', which is among the jobs`]: never;
};

/**
 * @throws TypeError when a kind of the jobs has no handler; UnknownKindError for a value that is not a
 * definition
 */
export function checkEveryKind(
  caller: string,
  jobs: readonly JobDefinition[] | undefined,
  handlers: { has(kind: string): boolean },
): void {
  if (jobs === undefined) return;
  if (!Array.isArray(jobs)) throw new TypeError(`${caller}: jobs must be an array, got ${shown(jobs)}`);
  for (const job of jobs) checkDefinition(`${caller}: jobs`, job);
  const missing = new Set(jobs.map(({ kind }) => kind).filter((kind) => !handlers.has(kind)));
  if (missing.size === 0) return;
  const kinds = [...missing].map((kind) => `'${kind}'`).join(', ');
  throw new TypeError(
    `${caller}: jobs has kinds without a handler: ${kinds}. ` +
      'Add one for each, handle(job, function), or remove from jobs the kinds that another worker handles',
  );
}
