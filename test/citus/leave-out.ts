import { relative } from 'node:path';
import { beforeEach, type RunnerTask } from 'vitest';
import { leftOut } from './left-out.ts';

beforeEach(({ task, skip }) => {
  const path: string[] = [];
  for (let at: RunnerTask | undefined = task; at !== undefined && at !== task.file; at = at.suite) {
    path.unshift(at.name);
  }
  const found = leftOut([relative(process.cwd(), task.file.filepath), ...path]);
  skip(found !== undefined, found?.reason);
});
