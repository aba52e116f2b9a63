import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { atFaultPoints, type FaultPoint } from '../../../src/core/sql/fault-point.ts';
import { importJobs } from '../../../src/entries/import/index.ts';
import { mapping } from '../mail.ts';
import { type Place, SYSTEMS } from '../systems.ts';

interface Options {
  readonly system: string;
  readonly place: Place;
  readonly batchSize: number;
  /** Where it kills itself, and at which time that it comes there. */
  readonly killAt: FaultPoint;
  readonly times: number;
}

/** Imports, and dies on the way. */
const { system: name, place, batchSize, killAt, times }: Options = JSON.parse(process.argv[2] ?? '');
const system = SYSTEMS[name];
if (system === undefined) throw new Error(`There is no system ${name}`);
let came = 0;
atFaultPoints(async (point) => {
  if (point === killAt && ++came === times) process.kill(process.pid, 'SIGKILL');
});
const client = postgres(place.url, { max: 2, onnotice: () => undefined });
const { source, close } = system.open(place);
await importJobs(drizzle({ client }), source, mapping, { batchSize });
await close();
await client.end();
