import { Command } from 'commander';
import { several, text } from './arguments.ts';
import { addCancel } from './commands/cancel.ts';
import { addDashboard } from './commands/dashboard.ts';
import { addDoctor } from './commands/doctor.ts';
import { addEnqueue } from './commands/enqueue.ts';
import { addFlows } from './commands/flows.ts';
import { addFork } from './commands/fork.ts';
import { addImport } from './commands/import.ts';
import { addInit } from './commands/init.ts';
import { addList } from './commands/list.ts';
import { addPause } from './commands/pause.ts';
import { addRedrive } from './commands/redrive.ts';
import { addRunNow } from './commands/run-now.ts';
import { addSchedules } from './commands/schedules.ts';
import { addShow } from './commands/show.ts';
import { addSql } from './commands/sql.ts';
import { addStatus } from './commands/status.ts';
import { addTail } from './commands/tail.ts';
import { addWork } from './commands/work.ts';
import type { ExitCode } from './exit-code.ts';

const COMMANDS = [
  addInit,
  addStatus,
  addDoctor,
  addList,
  addShow,
  addCancel,
  addRedrive,
  addFork,
  addRunNow,
  addPause,
  addSchedules,
  addFlows,
  addEnqueue,
  addImport,
  addWork,
  addTail,
  addDashboard,
  addSql,
];

/** All commands, with their options. @param end is told how the one that ran has ended */
export function createProgram(version: string, end: (code: ExitCode) => void): Command {
  const program = new Command('drizzle-queue')
    .description(
      'Operate the queues of an app on its own database: inspect, cancel, redrive, pause and run jobs.',
    )
    .version(version, '-v, --version', 'print the version')
    .option('--config <file>', 'the queue.config.ts (default: the nearest from here upwards)', text)
    .option('--url <address>', 'the database, instead of the one in the configs or DATABASE_URL', text)
    .option('--shard <name>', 'which of several databases (`shards` in queue.config.ts)', text)
    .option(
      '--env-file <file>',
      'a file of variables, instead of .env.local and .env; may be repeated',
      several,
    )
    .option('--json', 'print JSON, for programs')
    .option('--verbose', 'print the stack traces of errors')
    .helpCommand('help [command]', 'print help for a command')
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .configureOutput({
      // In one line: `error: unknown option '--wher' (Did you mean --where?)`.
      outputError: (message, write) => write(`${message.trim().replaceAll(/\s*\n\s*/g, ' ')}\n`),
    })
    .exitOverride();
  for (const add of COMMANDS) add(program, end);
  for (const command of program.commands) command.exitOverride().allowExcessArguments(false);
  return program;
}
