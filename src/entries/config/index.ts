/** `queue.config.ts`: what the command line knows of an app. Its public names. */
export {
  type AppConfig,
  defineConfig,
  type OneDatabase,
  type QueueConfig,
  type SeveralDatabases,
} from './define-config.ts';
