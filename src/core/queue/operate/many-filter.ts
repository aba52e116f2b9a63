import { checkOptions } from '../../job/known-options.ts';
import { shown } from '../../job/shown.ts';
import type { OwnColumn } from '../../schema/own-columns.ts';

/** A filter by which one call changes many jobs. */
interface ManyFilter {
  all?: true | undefined;
}

/**
 * Refuses a filter that may mean every job without saying so: an empty one, a misspelt name, and a value that
 * is `undefined`, such as that of a variable that was never set.
 *
 * @param which those of its names of which one must be there, unless it has `all`
 * @param own the app's own columns, whose names it may have as well
 * @throws TypeError
 */
export function checkManyFilter<TFilter extends ManyFilter>(
  method: string,
  filter: TFilter,
  known: ReadonlySet<string>,
  which: readonly (keyof TFilter & string)[],
  own: readonly OwnColumn[],
): TFilter {
  checkOptions(`${method}: filter`, filter, known, own);
  for (const [name, value] of Object.entries(filter)) {
    if (value === undefined)
      throw new TypeError(`${method}: ${name} is undefined; give a value, or leave it out`);
  }
  const { all } = filter;
  const names: readonly string[] = [...which, ...own.map(({ key }) => key)];
  const given = names.filter((name) => Reflect.get(filter, name) !== undefined);
  if (all !== undefined && all !== true)
    throw new TypeError(`${method}: all must be true, got ${shown(all)}`);
  if (all && given.length > 0)
    throw new TypeError(`${method}: all and ${given.join(', ')} cannot be combined`);
  if (!all && given.length === 0) {
    throw new TypeError(`${method}: filter must have one of ${names.join(', ')}; every job is { all: true }`);
  }
  return filter;
}
