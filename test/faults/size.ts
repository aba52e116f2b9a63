/** Whether the whole counts are run, which take a quarter of an hour: `FAULTS=long`. */
const long = process.env.FAULTS === 'long';

/** How much of a fault: enough to find what is broken, unless the long run is asked for. */
export function size(usual: number, whole: number): number {
  return long ? whole : usual;
}
