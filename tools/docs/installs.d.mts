/** Lines of `npm install`, as each runtime has them; undefined if there are other lines among them. */
export declare const installs: (
  text: string
) => ReadonlyArray<{ readonly runtime: string; readonly text: string }> | undefined
