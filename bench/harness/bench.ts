import type { PostgresSettings } from '../../test/support/embedded-postgres.ts';
import type { Options } from '../options.ts';
import { startServer } from './server.ts';
import { Sites } from './site.ts';
import type { System } from './system.ts';

/** Has a server for as long as something is measured. */
export async function withSites<T>(
  measure: (sites: Sites) => Promise<T>,
  settings: PostgresSettings = {},
): Promise<T> {
  const server = await startServer(settings);
  try {
    return await measure(new Sites(server));
  } finally {
    await server.stop();
  }
}

/** The systems that are wanted by name; all unless the options name some. */
export function chosen<T extends Pick<System, 'name'>>(
  systems: readonly T[],
  { only }: Options,
): readonly T[] {
  return systems.filter(({ name }) => only === undefined || only.some((text) => name.includes(text)));
}

/** Something that was measured several times. */
export interface Taken<K, V> {
  readonly of: K;
  readonly values: readonly V[];
}

/** Measures each thing once, then all of them again: whatever disturbs the machine for a while, disturbs one run of all alike. */
export async function inTurns<K, V>(
  title: string,
  runs: number,
  things: readonly K[],
  nameOf: (thing: K) => string,
  measure: (thing: K, run: number) => Promise<V>,
): Promise<Taken<K, V>[]> {
  const taken = things.map((of) => ({ of, values: [] as V[] }));
  for (let run = 1; run <= runs; run++) {
    for (const { of, values } of taken) {
      console.error(`${title}: run ${run} of ${runs}, ${nameOf(of)} …`);
      values.push(await measure(of, run));
    }
  }
  return taken;
}

/** A figure that is to be reached. */
export interface Wanted {
  readonly what: string;
  readonly reached: number;
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** Those that were not reached, in words. */
export function missed(scenario: string, wanted: readonly Wanted[]): string[] {
  return wanted
    .filter(
      ({ reached, atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY }) =>
        !(reached >= atLeast && reached <= atMost),
    )
    .map(({ what, reached, atLeast, atMost }) => {
      const bound = atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`;
      return `${scenario}: ${what}: ${bound} wanted, ${Number(reached.toPrecision(3))} reached`;
    });
}
