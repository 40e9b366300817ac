/**
 * The SQL that gives stores in PostgreSQL a schema and two roles.
 */

import { Screen } from "./screen.ts"

/** The names in the SQL. */
export interface Names {
  readonly schema: string
  /** The role that creates and migrates tables. */
  readonly migrating: string
  /** The role that only reads and writes them. */
  readonly running: string
}

/** Prints the SQL, for `psql` as a role that may create roles. */
export const printRoles = (names: Names) => Screen.useSync((screen) => screen.out(rolesSql(names)))

/** Returns the SQL. */
export const rolesSql = (names: Names): string => {
  const [schema, migrating, running] = [names.schema, names.migrating, names.running].map(identifier)
  return `-- Passwords: \\password ${migrating} and \\password ${running} in psql.
CREATE ROLE ${migrating} LOGIN;
CREATE ROLE ${running} LOGIN;
CREATE SCHEMA ${schema} AUTHORIZATION ${migrating};
-- Set for the roles, since a pooler ignores settings of connections.
ALTER ROLE ${migrating} SET search_path = ${schema};
ALTER ROLE ${running} SET search_path = ${schema};
GRANT USAGE ON SCHEMA ${schema} TO ${running};
ALTER DEFAULT PRIVILEGES FOR ROLE ${migrating} IN SCHEMA ${schema}
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO ${running};
ALTER DEFAULT PRIVILEGES FOR ROLE ${migrating} IN SCHEMA ${schema}
  GRANT USAGE ON SEQUENCES TO ${running};
`
}

const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`
