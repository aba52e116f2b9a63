import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where a run keeps its copy of PGlite's data until its end. */
export function pgliteCopy(prefix: string): string {
  return join(tmpdir(), `${prefix}_pglite.tar`);
}
