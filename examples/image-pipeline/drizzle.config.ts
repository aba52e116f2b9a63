import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: './examples/image-pipeline/schema.ts',
  out: './examples/image-pipeline/drizzle',
});
