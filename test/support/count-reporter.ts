import { writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';

/** How many tests of a run ended in which way. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Writes how a run of Vitest ended to the file that the environment variable TEST_COUNTS names, for `test/run.ts`. */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const path = process.env.TEST_COUNTS;
    if (path !== undefined) writeFileSync(path, JSON.stringify(countTests(modules, unhandledErrors.length)));
  }
}

/** What is no test fails as one would: a file that cannot be loaded, a hook, an error that nobody has caught. */
function countTests(modules: readonly TestModule[], unhandledErrors: number): Counts {
  let [passed, failed, skipped] = [0, unhandledErrors, 0];
  for (const module of modules) {
    let failedInside = 0;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === 'passed') passed++;
      else if (state === 'failed') failedInside++;
      else skipped++;
    }
    failed += module.ok() ? failedInside : Math.max(1, failedInside);
  }
  return { passed, failed, skipped };
}
