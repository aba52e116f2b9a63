import { shown } from '../../job/shown.ts';

/** From the least important to the most. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/**
 * What a worker can log to: a logger of pino's way, whose methods take fields and then a message. Or the
 * console, which gets the message alone, as one line.
 */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** Asked before a line is made, where a logger has it, as pino does. */
  isLevelEnabled?(level: string): boolean;
}

export const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/** Longer ones are cut: a terminal is not the place for a stack. */
const MAX_LINE = 500;
/**
 * Line breaks, what moves a cursor or gives colours, and what turns the direction of writing: error texts
 * come from anywhere.
 */
const CONTROLS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be printed
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+/g;

/** For callers without TypeScript. @throws TypeError */
export function checkLogger(what: string, logger: Logger): Logger {
  for (const level of LEVELS) {
    if (typeof logger === 'object' && logger !== null && typeof logger[level] === 'function') continue;
    throw new TypeError(
      `${what} must have the functions debug, info, warn and error, as pino's loggers and the console do; ` +
        `got ${shown(logger)}`,
    );
  }
  return logger;
}

/** What is printed of a message, in one line. */
export function printed(message: string): string {
  const line = `drizzle-queue: ${message.replaceAll(CONTROLS, ' ')}`;
  return line.length > MAX_LINE ? `${line.slice(0, MAX_LINE - 1)}…` : line;
}
