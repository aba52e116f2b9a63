import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Ended, endOf, type ProgramOptions, run } from './run-program.ts';

/** A user's project in a folder of its own, outside of this repository. */
export interface Project {
  readonly directory: string;
  /** `npm install` of the tarball and of these packages; answers how that ended. */
  tryInstall(packages?: readonly string[]): Promise<Ended>;
  /** The same, where it must succeed. */
  install(packages?: readonly string[]): Promise<void>;
  write(path: string, text: string): Promise<void>;
  /** Runs a program in it that must succeed; answers what it said. */
  run(program: string, args: readonly string[], env?: ProgramOptions['env']): Promise<string>;
}

const INSTALL = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];

/** A project with nothing but a `package.json`. */
export async function createProject(directory: string, tarball: string): Promise<Project> {
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'package.json'), '{ "private": true, "version": "0.0.0" }\n', {
    flag: 'wx',
  });
  return openProject(directory, tarball);
}

/** A project that is there, with a `package.json`. */
export function openProject(directory: string, tarball: string): Project {
  const tryInstall = (packages: readonly string[] = []) =>
    endOf('npm', [...INSTALL, tarball, ...packages], { cwd: directory });
  return {
    directory,
    tryInstall,
    async install(packages) {
      const { code, output } = await tryInstall(packages);
      if (code !== 0) throw new Error(`npm install ended with ${code}:\n${output}`);
    },
    write: (path, text) => writeFile(join(directory, path), text),
    run: (program, args, env = {}) => run(program, args, { cwd: directory, env }),
  };
}

/** The manifest of a package as it is installed in a project. */
export async function installedManifest(directory: string, name: string): Promise<{ version: string }> {
  return JSON.parse(await readFile(join(directory, 'node_modules', name, 'package.json'), 'utf8'));
}
