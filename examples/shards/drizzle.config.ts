import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: './examples/shards/schema.ts',
  out: './examples/shards/drizzle',
});
