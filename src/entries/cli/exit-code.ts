/** 0: done. 1: failed, or found an error. 2: the arguments are wrong. 130: interrupted before it was done. */
export type ExitCode = 0 | 1 | 2 | 130;
