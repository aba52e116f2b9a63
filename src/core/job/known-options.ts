import { checkObject } from './limits.ts';

/** A further name that an object may have, such as that of one of the app's own columns. */
export interface Key {
  readonly key: string;
}

/** The names of an interface's options; TypeScript asks for every one. */
export function namesOf<TOptions>(names: Readonly<Record<keyof TOptions, true>>): ReadonlySet<string> {
  return new Set(Object.keys(names));
}

/**
 * Refuses a value that is not an object, and unknown options: a misspelt option would be ignored silently.
 *
 * @throws TypeError naming the option, and the one that was probably meant
 */
export function checkOptions<T extends object>(
  what: string,
  options: T,
  known: ReadonlySet<string>,
  also: readonly Key[] = [],
): T {
  const name = unknownIn(checkObject(what, options), known, also);
  if (name === undefined) return options;
  const names = [...known, ...also.map(({ key }) => key)];
  const meant = names.filter((other) => isWithin(name, other) || isWithin(other, name));
  throw new TypeError(
    `${what.replace(/: (options|filter)$/, '')}: unknown option '${name}'; ` +
      (meant.length > 0 ? `did you mean ${meant.join(' or ')}?` : `valid options: ${names.join(', ')}`),
  );
}

/** Only what is there, where a value that is `undefined` would replace another one, or be refused. */
export function given<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  // What is left has the same types.
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

/** The first property name of the object that is not a known option. */
export function unknownIn(
  options: object,
  known: ReadonlySet<string>,
  also: readonly Key[],
): string | undefined {
  for (const name of Object.keys(options)) {
    if (!known.has(name) && !also.some(({ key }) => key === name)) return name;
  }
  return undefined;
}

/** Whether the letters of one name stand in another in their order: `delay` in `delayMs`, `knd` in `kind`. */
function isWithin(name: string, other: string): boolean {
  const letters = [...name.toLowerCase()];
  for (const letter of other.toLowerCase()) if (letter === letters[0]) letters.shift();
  return letters.length === 0 && name.length * 2 > other.length;
}
