import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: './examples/agent-loop/schema.ts',
  out: './examples/agent-loop/drizzle',
});
