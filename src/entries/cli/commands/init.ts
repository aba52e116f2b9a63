import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import type { Command } from 'commander';
import { text } from '../arguments.ts';
import { type Answer, type Call, call } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { type Change, notesOn, planOf, workerFile } from '../init/plan.ts';
import { type Survey, surveyApp } from '../init/survey.ts';
import { envFiles, loadEnv } from '../project/load-env.ts';
import { complain } from '../terminal/complain.ts';
import { confirm } from '../terminal/confirm.ts';

interface Flags {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly drizzleConfig?: string;
}

/** `init`: adds the tables, a first job and a worker to an app with Drizzle. */
export function addInit(program: Command, end: (code: ExitCode) => void): void {
  const command = program
    .command('init')
    .description('add the tables, a first job and a worker to an app that uses Drizzle; asks first')
    .option('-y, --yes', 'do not ask for confirmation')
    .option('--dry-run', 'only print what would be written')
    .option('--drizzle-config <file>', 'the drizzle.config.ts (default: the nearest, or the only one)', text);
  call<Flags>(command, init, end);
}

async function init({ flags, output }: Call<Flags>): Answer {
  const cwd = process.cwd();
  loadEnv(cwd, flags.envFile ?? []);
  const survey = await surveyApp(cwd, flags.drizzleConfig);
  const changes = planOf(survey);
  const notes = notesOn(survey);
  const { dryRun = false, yes = false } = flags;
  const shown = (change: Change) => ({ ...change, file: relative(cwd, change.file) });
  const todo = changes.filter(({ action }) => action !== 'there');
  if (!output.json) {
    for (const { file, action, text } of changes.map(shown)) {
      const verb = { create: 'create', append: 'add to', there: 'leave as it is' }[action];
      await output.write(`${output.styled(verb.padEnd(15), action === 'there' ? 'dim' : 'green')}`);
      await output.line(action === 'append' ? `${file}: ${text.trim()}` : file);
      if (dryRun && action === 'create') await output.line(text.replaceAll(/^(?=.)/gm, '    '), 'dim');
    }
    for (const note of notes) await output.line(`note: ${note}`);
  }
  if (!dryRun && todo.length > 0) {
    if (!(await confirm('Write this?', yes, 'only print it'))) {
      complain('Nothing was written.');
      return 1;
    }
    for (const { file, action, text } of todo) {
      mkdirSync(dirname(file), { recursive: true });
      // A file that was created meanwhile is not overwritten.
      if (action === 'create') writeFileSync(file, text, { flag: 'wx' });
      else appendFileSync(file, text);
    }
  }
  if (output.json) await output.document({ dryRun, changes: changes.map(shown), notes });
  else if (!dryRun) {
    await output.write(nextSteps(survey, todo.length, canGreet(changes)));
    const worker = changes.find(({ file }) => file === workerFile(survey));
    if (worker !== undefined)
      await output.write(start(survey, shown(worker).file, envFiles(cwd, flags.envFile ?? [])));
  }
  return undefined;
}

/** Whether the first job is still there: jobs of the app may have taken its place. */
function canGreet(changes: readonly Change[]): boolean {
  return changes.some(({ file, text, action }) =>
    /'greet'/.test(action === 'there' ? readFileSync(file, 'utf8') : text),
  );
}

/** How to start the worker that was written. */
function start({ end, hasTsx, hasNext, commands }: Survey, file: string, env: readonly string[]): string {
  const needsTsx = end === 'ts' && commands.run !== 'bunx';
  const program = [
    ...(commands.run === 'bunx' ? ['bun'] : ['node']),
    ...(needsTsx ? ['--import tsx'] : []),
    ...(hasNext ? ['--conditions=react-server'] : []),
    // Of two files the last holds in Node.js, and the first for this command.
    ...env.toReversed().map((each) => `--env-file=${each}`),
    file.replaceAll('\\', '/'),
  ];
  return [
    'The worker as a program of its own, as in production:',
    ...(needsTsx && !hasTsx ? [`  ${commands.add} tsx`] : []),
    `  ${program.join(' ')}`,
    '',
  ].join('\n');
}

function nextSteps(survey: Survey, written: number, greets: boolean): string {
  const { hasQueue, driver, database, isInjected, commands, configOption } = survey;
  const { add, run } = commands;
  const packages = [
    ...(hasQueue ? [] : ['drizzle-queue']),
    ...(driver === undefined && database === undefined && !isInjected ? ['postgres'] : []),
  ];
  return [
    '',
    written === 0 ? 'Everything is already there. Next steps:' : 'Next:',
    ...(packages.length === 0 ? [] : [`  ${add} ${packages.join(' ')}`]),
    `  ${run} drizzle-kit generate${configOption} && ${run} drizzle-kit migrate${configOption}`,
    // Both need the handlers, which only Nest has there.
    ...(isInjected
      ? []
      : [
          ...(greets ? [`  ${run} drizzle-queue enqueue greet '{ "name": "Ada" }'`] : []),
          `  ${run} drizzle-queue work --watch`,
        ]),
    `  ${run} drizzle-queue dashboard`,
    '',
  ].join('\n');
}
