/** `queue.config.ts`: what the command line knows of an app. Its public names. */
export { defineConfig, type QueueConfig } from './define-config.ts';
