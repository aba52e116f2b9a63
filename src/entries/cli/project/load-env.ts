import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { Failure } from '../failure.ts';

/** The files of variables: the named ones, or else those that are there, the first before the others. */
export function envFiles(folder: string, named: readonly string[]): readonly string[] {
  return named.length > 0 ? named : ['.env.local', '.env'].filter((name) => existsSync(join(folder, name)));
}

/**
 * Takes what is not set yet from `.env.local` and `.env` of the folder, or from the named files instead, the
 * first before the others.
 */
export function loadEnv(folder: string, named: readonly string[]): void {
  for (const name of envFiles(folder, named)) {
    const file = named.length > 0 ? name : join(folder, name);
    let text: string;
    try {
      text = readFileSync(file, 'utf8');
    } catch (error) {
      const why = error instanceof Error && 'code' in error ? error.code : String(error);
      throw new Failure(`The file ${file} of --env-file cannot be read (${why})`, 2);
    }
    for (const [name, value] of Object.entries(parseEnv(text))) process.env[name] ??= value;
  }
}
