/** One of them, whatever the number. */
export function oneOf<T>(things: readonly T[], index: number): T {
  const thing = things[index % things.length];
  if (thing === undefined) throw new Error('there is none');
  return thing;
}
