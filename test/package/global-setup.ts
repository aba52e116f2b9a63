import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { packLibrary } from './support/pack.ts';
import { createProject } from './support/project.ts';
import { installTools } from './support/tools.ts';
import { DRIZZLE_VERSIONS, type DrizzleMajor } from './support/versions.ts';

/** The library as its users get it. */
export interface Packed {
  readonly tarball: string;
  /** The paths in it, sorted. */
  readonly files: readonly string[];
  /** A project for each major of drizzle-orm that had nothing before the tarball was installed in it. */
  readonly projects: Readonly<Record<DrizzleMajor, string>>;
}

declare module 'vitest' {
  interface ProvidedContext {
    packed: Packed;
  }
}

/**
 * Before all tests: builds and packs the library once, and installs it beside each major of drizzle-orm. With `KEEP_PACKED=FOLDER` that
 * is kept there, and a run that finds it takes it as it is: for work on one of these tests.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await installTools();
  const keepIn = process.env.KEEP_PACKED;
  if (keepIn !== undefined) {
    const kept = await readFile(join(keepIn, 'packed.json'), 'utf8').catch(() => undefined);
    project.provide('packed', kept === undefined ? await packAndInstall(keepIn) : JSON.parse(kept));
    return async () => undefined;
  }
  const directory = await mkdtemp(join(tmpdir(), 'drizzle-queue-package-'));
  const teardown = () => rm(directory, { recursive: true, force: true });
  try {
    project.provide('packed', await packAndInstall(directory));
    return teardown;
  } catch (error) {
    await teardown();
    throw error;
  }
}

async function packAndInstall(directory: string): Promise<Packed> {
  await mkdir(directory, { recursive: true });
  const { tarball, files } = await packLibrary(directory);
  const install = async (major: DrizzleMajor): Promise<string> => {
    const app = await createProject(join(directory, `with-drizzle-${major}`), tarball);
    const drizzle = `drizzle-orm@${DRIZZLE_VERSIONS[major]}`;
    await app.install([drizzle, 'postgres@3.4.9', '@types/node@20.19.43', '@opentelemetry/api@1.9.1']);
    return app.directory;
  };
  const projects = { '0.45': await install('0.45'), '1.0': await install('1.0') };
  const packed: Packed = { tarball, files, projects };
  await writeFile(join(directory, 'packed.json'), JSON.stringify(packed));
  return packed;
}
