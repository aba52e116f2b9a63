/** The library's warnings in this process, from before its first worker: each is given once. */
export const warnings: string[] = [];

process.on('warning', ({ name, message }) => {
  if (name === 'DrizzleQueueWarning') warnings.push(message);
});
