import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: './examples/document-pipeline/schema.ts',
  out: './examples/document-pipeline/drizzle',
});
