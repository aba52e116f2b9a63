import { existsSync } from 'node:fs';
import { relative } from 'node:path';
import type { Reporter, TestCase, TestModule } from 'vitest/node';
import { filesLeftOut, LEFT_OUT, leftOut, SEPARATOR } from './left-out.ts';

/**
 * Prints what a slice has left out on a cluster, and why. An entry of the list that fits no test fails the run, as its
 * test has another name by now or is gone.
 */
export default class LeftOutReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = modules
      .flatMap((module) => [...module.children.allTests()])
      .filter((test) => test.result().state === 'skipped');
    const { CITUS_SLICE: slice } = process.env;
    const files = filesLeftOut().filter((file) => slice !== undefined && file.startsWith(slice));
    const names = new Map<string, string[]>(LEFT_OUT.map(({ reason }) => [reason, []]));
    const add = (reason: string, name: string) => names.set(reason, [...(names.get(reason) ?? []), name]);
    const met = new Set<string>();
    for (const file of files) {
      const found = leftOut([file]);
      if (found === undefined || !existsSync(file)) continue;
      add(found.reason, `${file}, the whole file`);
      met.add(found.by);
    }
    for (const test of skipped) {
      const path = pathOf(test);
      const found = leftOut(path);
      if (found !== undefined) met.add(found.by);
      const result = test.result();
      const note = result.state === 'skipped' ? result.note : undefined;
      add(
        found?.reason ??
          note ??
          'Their file leaves them out, as the driver or the machine lacks what they need',
        path.join(SEPARATOR),
      );
    }
    console.log('\nLeft out on this cluster:');
    for (const [reason, tests] of names) {
      if (tests.length > 0) console.log(`\n  ${reason}:\n${tests.map((name) => `    ${name}`).join('\n')}`);
    }
    const ran = new Set([...modules.map(({ moduleId }) => pathTo(moduleId)), ...files]);
    const stale = LEFT_OUT.flatMap(({ tests }) => tests).filter(
      (name) => ran.has(name.split(SEPARATOR, 1)[0] ?? '') && !met.has(name),
    );
    if (stale.length === 0) return;
    process.exitCode = 1;
    console.error(`\nThe list of what is left out names no test any more by:\n  ${stale.join('\n  ')}`);
  }
}

/** The file of a test, and the names that lead to it. */
function pathOf({ module, fullName }: TestCase): string[] {
  return [pathTo(module.moduleId), ...fullName.split(SEPARATOR)];
}

function pathTo(moduleId: string): string {
  return relative(process.cwd(), moduleId);
}
