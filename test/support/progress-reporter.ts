import { renameSync, writeFileSync } from 'node:fs';
import { DefaultReporter, type TestModule, type TestSpecification } from 'vitest/node';

/** How far a run has come: how its tests ended so far, and in which files some failed. */
export interface Progress {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** The test files of the run, and how many of them have ended. */
  readonly files: number;
  readonly filesDone: number;
  /** The paths of the files with failures, from the root of the repository. */
  readonly failedFiles: readonly string[];
}

/**
 * For `test/run.ts`: prints failures and nothing else. It keeps the progress of the run in the file that the
 * environment variable TEST_PROGRESS names.
 */
export default class ProgressReporter extends DefaultReporter {
  #files = 0;

  constructor() {
    super({ summary: false });
  }

  override onInit(vitest: Parameters<DefaultReporter['onInit']>[0]): void {
    this.ctx = vitest;
    this.silent ??= vitest.config.silent;
  }

  override onTestRunStart(specifications: readonly TestSpecification[]): void {
    super.onTestRunStart(specifications);
    this.#files = specifications.length;
    this.#write([]);
  }

  override onTestModuleEnd(module: TestModule): void {
    super.onTestModuleEnd(module);
    this.#write(this.#ended());
  }

  override printTestModule(module: TestModule): void {
    if (!module.ok()) super.printTestModule(module);
  }

  override printTestCase(...[state, test]: Parameters<DefaultReporter['printTestCase']>): void {
    if (test.result().state === 'failed') super.printTestCase(state, test);
  }

  override onTestRunEnd(...[modules, errors, reason]: Parameters<DefaultReporter['onTestRunEnd']>): void {
    super.onTestRunEnd(modules, errors, reason);
    this.#write(modules, errors.length);
  }

  /** Counts of one run would only be in the way of the summary of all runs. */
  override reportTestSummary(): void {}

  #ended(): readonly TestModule[] {
    return this.ctx.state
      .getTestModules()
      .filter((module) => !['queued', 'pending'].includes(module.state()));
  }

  #write(modules: readonly TestModule[], unhandledErrors = 0): void {
    const path = process.env.TEST_PROGRESS;
    if (path === undefined) return;
    const counted = { ...countTests(modules, unhandledErrors), files: Math.max(this.#files, modules.length) };
    // `test/run.ts` reads it at any time.
    writeFileSync(`${path}.new`, JSON.stringify(counted));
    renameSync(`${path}.new`, path);
  }
}

/** A file that cannot be loaded, a hook that fails and an unhandled error each count as a failed test. */
function countTests(modules: readonly TestModule[], unhandledErrors: number): Omit<Progress, 'files'> {
  let [passed, failed, skipped] = [0, unhandledErrors, 0];
  const failedFiles: string[] = [];
  for (const module of modules) {
    let failedInside = 0;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === 'passed') passed++;
      else if (state === 'failed') failedInside++;
      else skipped++;
    }
    if (module.ok()) failed += failedInside;
    else {
      failed += Math.max(1, failedInside);
      failedFiles.push(module.relativeModuleId);
    }
  }
  return { passed, failed, skipped, filesDone: modules.length, failedFiles };
}
