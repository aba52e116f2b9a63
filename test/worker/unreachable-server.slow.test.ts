import { unreachableDatabase } from './unreachable-database.ts';

unreachableDatabase('postgres.js');
