// Generated from docs/openapi.json by `npm run client`. Not to be edited.

export interface paths {
    "/api/v1/artifacts/{sha256}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Downloads an artifact, or one range of it. */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description One range: `bytes=from-to`, `bytes=from-`, `bytes=-last` */
                    Range?: string | null;
                };
                path: {
                    /** @description 64 lower-case hex digits */
                    sha256: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description All of it */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/octet-stream": number[];
                    };
                };
                /** @description The range */
                206: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/octet-stream": number[];
                    };
                };
                /** @description No such artifact */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description The range lies outside */
                416: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        /** Uploads an artifact under the SHA-256 of its bytes. Repeatable without harm. */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description 64 lower-case hex digits */
                    sha256: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/octet-stream": number[];
                };
            };
            responses: {
                /** @description It was there already */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Artifact"];
                    };
                };
                /** @description Stored and durable */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Artifact"];
                    };
                };
                /** @description The bytes don't match the name, or broke off; nothing was stored */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description The sender fell silent; nothing was stored */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description Too large */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        /** Says whether an artifact is there, and how large it is. */
        head: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description 64 lower-case hex digits */
                    sha256: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is there */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description It isn't */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        patch?: never;
        trace?: never;
    };
    "/api/v1/artifacts/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Uploads up to 1,000 small artifacts, all or none. Repeatable without harm.
         * @description The body is one line of JSON, `{"files":[{"sha256":"<hex>","size":<bytes>},…]}` and a line feed, then the bytes of
         *     those files, one after the other in that order, with nothing between them. All of it has at most 4 MiB. Each file is
         *     checked against its name; when this is answered, all of them are durable.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            /** @description A line of JSON (`ArtifactBatch`), then the bytes */
            requestBody: {
                content: {
                    "application/octet-stream": number[];
                };
            };
            responses: {
                /** @description All are stored and durable */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ArtifactsStored"];
                    };
                };
                /** @description No such list, bytes that don't match their name, or too few or too many of them; nothing was stored */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description The sender was too slow; nothing was stored */
                408: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description Too large; nothing was stored */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/artifacts/missing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Says which of these artifacts have to be uploaded. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ArtifactNames"];
                };
            };
            responses: {
                /** @description Those that are not there */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MissingArtifacts"];
                    };
                };
                /** @description Not a list of at most 1,000 names */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists who did what, newest first.
         * @description A page looks at a bounded part of the trail: with filters it may be short, even empty, and still have a next one.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Of these kinds, joined by commas, such as `job.submit,job.cancel`; one that ends with a dot, such as `job.`, means all that begin so */
                    action?: string;
                    /** @description From this address */
                    address?: string;
                    /** @description The `next_cursor` of the page before */
                    cursor?: string;
                    /** @description 1–500; 100 when left out */
                    limit?: number;
                    /** @description At this instant (RFC 3339) or later */
                    since?: string;
                    /** @description About this id or name */
                    target?: string;
                    /** @description Before this instant */
                    until?: string;
                    /** @description Of this principal */
                    who?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_Audit"];
                    };
                };
                /** @description A bad cursor or filter */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/bulk": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the newest actions. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description At most 100, the newest first; they are kept for 30 days */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_Bulk"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Cancels or retries every job that a filter passes, in the background; with `dry_run` only counts them.
         * @description Touches jobs of owners that the token acts for, and none that is created later. May be repeated without harm: a job
         *     that was cancelled already is left as it is, and one that was retried is not found again.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["BulkRequest"];
                };
            };
            responses: {
                /** @description With `dry_run`: how many it would act on. Else: the key began this one before */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BulkPreview"];
                    };
                };
                /** @description It has begun */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Bulk"];
                    };
                };
                /** @description Faults, all of them named */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/bulk/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tells how far an action is. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description As it is now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Bulk"];
                    };
                };
                /** @description No such action */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/bulk/{id}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stops an action; what it did stays done. Its maker may, and operators. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The action */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description As it is now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Bulk"];
                    };
                };
                /** @description Somebody else's */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description No such action */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follows what changes, as server-sent events.
         * @description The first event is of the type `start` and says where the stream begins; then one of the type `change` a change.
         *     Each `id` is a cursor to resume from with `Last-Event-ID`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Only what came after; `Last-Event-ID` counts before it */
                    cursor?: string;
                    /** @description Of one job */
                    job?: string;
                    /** @description Of jobs with this label: `key:value` */
                    label?: string;
                    /** @description Of jobs with this origin: `kind:id` */
                    origin?: string;
                };
                header?: {
                    /** @description Only what came after; from now on without either */
                    "Last-Event-ID"?: string | null;
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A stream without end */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": components["schemas"]["Event"];
                    };
                };
                /** @description A bad cursor or filter */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description The cursor is older than the events that are kept, or beyond the newest one */
                410: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists jobs, newest first. All conditions given must hold. */
        get: {
            parameters: {
                query?: {
                    /** @description At or after this instant (RFC 3339) */
                    created_after?: string;
                    /** @description Before this instant (RFC 3339) */
                    created_before?: string;
                    /** @description The `next_cursor` of the page before */
                    cursor?: string;
                    /** @description The exit code of the newest ended attempt, 0–255 */
                    exit?: string;
                    /** @description The key it came with */
                    idempotency_key?: string;
                    /** @description `task` or `service` */
                    kind?: string;
                    /** @description `key:value`, `key:one,other`, `key:begins*`, or `key` alone: has the label; several must all match */
                    label?: string[];
                    /** @description Bands of priority, 0–4: 0–19, 20–39, 40–59, 60–79, 80–100 */
                    lane?: string;
                    /** @description 1–500; 100 when left out */
                    limit?: number;
                    /** @description Names, joined by commas; `train*` begins with, `*train*` holds */
                    name?: string;
                    /** @description Names or ids of nodes: where the newest attempt is or was */
                    node?: string;
                    /** @description `kind:id` of what made the job */
                    origin?: string;
                    /** @description How the newest ended attempt ended, such as `failed,timed_out` */
                    outcome?: string;
                    /** @description Owners, joined by commas; `\` takes the next character as it is, here and in every other condition */
                    owner?: string;
                    /** @description Pools */
                    pool?: string;
                    /** @description Part of the id, the name or the command line, in any case */
                    q?: string;
                    /** @description The `reason` as shown, such as `retries_exhausted` or `backing_off` */
                    reason?: string;
                    /** @description The signal that the newest ended attempt died of */
                    signal?: string;
                    /** @description One or more statuses, joined by commas; a leading `!` means none of them, here and in every other condition */
                    status?: string;
                    /** @description Who submitted it */
                    submitted_by?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page; it may be short and still have a next one */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_Job"];
                    };
                };
                /** @description A filter that can't be read */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description It took longer than it may: `read_too_slow` */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Submits a job.
         * @description With an idempotency key (a field or the header) the call can be repeated: the same job gives 200 and the job it
         *     made the first time.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description Instead of the field `idempotency_key` */
                    "Idempotency-Key"?: string | null;
                };
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["JobSubmit"];
                };
            };
            responses: {
                /** @description Accepted before, with the same key */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Job"];
                    };
                };
                /** @description Accepted and durable */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Job"];
                    };
                };
                /** @description Faults, all of them named */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description The token does not act for the owner */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description The key was used for another job */
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description Too large */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description Too many submissions at a time, or too many jobs of the owner */
                429: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads a job. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The job */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The job */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Job"];
                    };
                };
                /** @description Not an id */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description No such job */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/attempts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists a job's attempts, by number. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The job */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description All attempts */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_Attempt"];
                    };
                };
                /** @description No such job */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancels a job: at once when nothing runs, else its attempt is stopped. A job that is over stays as it is. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The job */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Wanted; the job as it is now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Job"];
                    };
                };
                /** @description The token does not act for the owner */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description No such job */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads a job's history, oldest first. */
        get: {
            parameters: {
                query?: {
                    /** @description The `next_cursor` of the page before */
                    cursor?: string;
                    /** @description 1–500; 500 when left out */
                    limit?: number;
                };
                header?: never;
                path: {
                    /** @description The job */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page of events */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_Event"];
                    };
                };
                /** @description A bad cursor */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description No such job */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Reads the log of one attempt: the bytes as the process wrote them, both streams by arrival unless one is named.
         * @description A followed log goes on until the attempt is over. The header `Jobyard-Attempt` says which attempt it is.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Which attempt; the newest when left out */
                    attempt?: number;
                    /** @description Suggest a file name to whoever saves it */
                    download?: boolean;
                    /** @description Go on until the attempt is over */
                    follow?: boolean;
                    /** @description From this byte of the stream; needs `stream` */
                    from?: number;
                    /** @description Only what was read at or after this instant (RFC 3339) */
                    since?: string;
                    /** @description `stdout` or `stderr`; both when left out */
                    stream?: string;
                    /** @description Only the last so many lines, at most 10000 */
                    tail?: number;
                    /** @description Up to this byte of the stream; needs `stream` */
                    to?: number;
                };
                header?: never;
                path: {
                    /** @description The job */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The bytes */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/octet-stream": number[];
                    };
                };
                /** @description Parameters that don't go together */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description The token does not act for the owner */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description No such job or attempt */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description The log is older than logs are kept */
                410: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/logs/pieces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists how the log of an attempt came, piece by piece over both streams: with it, bytes of the streams can be put in
         *     the order of their arrival, and have times.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Which attempt; the newest when left out */
                    attempt?: number;
                    /** @description The `next_cursor` of the page before, or any piece's number: the page goes on behind it, in its order */
                    cursor?: number;
                    /** @description 1–1000; 100 when left out */
                    limit?: number;
                    /** @description `newest` first, which is usual, or `oldest` */
                    order?: string;
                    /** @description `stdout` or `stderr`; both when left out */
                    stream?: string;
                };
                header?: never;
                path: {
                    /** @description The job */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_LogPiece"];
                    };
                };
                /** @description Parameters that don't go together */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description The token does not act for the owner */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description No such job or attempt */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/logs/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Looks for a text in the log of an attempt: its bytes, no pattern.
         * @description A call reads a bounded part of the log. Where that is not all, it answers a `next_cursor`, also without any match: go
         *     on with it. Matches don't overlap, and none goes over the end of what there is.
         */
        get: {
            parameters: {
                query: {
                    /** @description Which attempt; the newest when left out */
                    attempt?: number;
                    /** @description `exact`, which is usual, or `ignore`: ASCII letters match whatever their case */
                    case?: string;
                    /** @description The `next_cursor` of the call before */
                    cursor?: string;
                    /** @description From this byte of the stream on; needs `stream`, and lines are not counted then */
                    from?: number;
                    /** @description 1–500; 100 when left out */
                    limit?: number;
                    /** @description The text, 1–256 bytes */
                    q: string;
                    /** @description `stdout` or `stderr`; both, one after the other, when left out */
                    stream?: string;
                };
                header?: never;
                path: {
                    /** @description The job */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description One item a match */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LogSearch"];
                    };
                };
                /** @description Parameters that don't go together */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description The token does not act for the owner */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description No such job or attempt */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/logs/sizes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Says how long the logs of a job's attempts are, by number; of more than 1,000 those of the newest. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The job */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description One item an attempt */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_LogSizes"];
                    };
                };
                /** @description The token does not act for the owner */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description No such job */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Starts a new round of a job that failed or was cancelled. When there is a newer attempt than `after_attempt`,
         *     nothing is done.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The job */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: {
                content: {
                    "application/json": components["schemas"]["RetryRequest"] | null;
                };
            };
            responses: {
                /** @description The job as it is now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Job"];
                    };
                };
                /** @description The token does not act for the owner */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description No such job */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description The job is not over, or ended well */
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stops a service, which ends well then: at once when nothing runs, else after TERM and its grace. One that is over
         *     stays as it is.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The job */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Wanted; the job as it is now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Job"];
                    };
                };
                /** @description The token does not act for the owner */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description No such job */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description The job is a task */
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/{id}/why": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Explains why a job isn't running yet, and what would change that. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The job */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Per gate and per node */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Why"];
                    };
                };
                /** @description No such job */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Submits up to 10,000 jobs, all or none. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["BatchSubmit"];
                };
            };
            responses: {
                /** @description All accepted and durable; one item a job, in order */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BatchAccepted"];
                    };
                };
                /** @description Nothing accepted; faults name index and field */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description The token does not act for an owner */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description A key was used for another job */
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description Too large */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description Too many batches at a time, or too many jobs of an owner */
                429: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Checks a job as a submit would, and says what it would wait for. Keeps nothing.
         * @description Idempotency keys and the number of the owner's jobs are not looked at.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["JobSubmit"];
                };
            };
            responses: {
                /** @description It would be accepted */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["JobCheck"];
                    };
                };
                /** @description Faults, all of them named */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description The token does not act for the owner */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description Too large */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/count": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts the jobs that a filter passes, up to 10,000. */
        get: {
            parameters: {
                query?: {
                    /** @description At or after this instant (RFC 3339) */
                    created_after?: string;
                    /** @description Before this instant (RFC 3339) */
                    created_before?: string;
                    /** @description The exit code of the newest ended attempt, 0–255 */
                    exit?: string;
                    /** @description The key it came with */
                    idempotency_key?: string;
                    /** @description `task` or `service` */
                    kind?: string;
                    /** @description `key:value`, `key:one,other`, `key:begins*`, or `key` alone: has the label; several must all match */
                    label?: string[];
                    /** @description Bands of priority, 0–4: 0–19, 20–39, 40–59, 60–79, 80–100 */
                    lane?: string;
                    /** @description Names, joined by commas; `train*` begins with, `*train*` holds */
                    name?: string;
                    /** @description Names or ids of nodes: where the newest attempt is or was */
                    node?: string;
                    /** @description `kind:id` of what made the job */
                    origin?: string;
                    /** @description How the newest ended attempt ended, such as `failed,timed_out` */
                    outcome?: string;
                    /** @description Owners, joined by commas; `\` takes the next character as it is, here and in every other condition */
                    owner?: string;
                    /** @description Pools */
                    pool?: string;
                    /** @description Part of the id, the name or the command line, in any case */
                    q?: string;
                    /** @description The `reason` as shown, such as `retries_exhausted` or `backing_off` */
                    reason?: string;
                    /** @description The signal that the newest ended attempt died of */
                    signal?: string;
                    /** @description One or more statuses, joined by commas; a leading `!` means none of them, here and in every other condition */
                    status?: string;
                    /** @description Who submitted it */
                    submitted_by?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description How many */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["JobCount"];
                    };
                };
                /** @description A filter that can't be read */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description It took longer than it may: `read_too_slow` */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/rows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists jobs as lines, newest first: what a table shows, without what was submitted to be executed. */
        get: {
            parameters: {
                query?: {
                    /** @description At or after this instant (RFC 3339) */
                    created_after?: string;
                    /** @description Before this instant (RFC 3339) */
                    created_before?: string;
                    /** @description The `next_cursor` of the page before */
                    cursor?: string;
                    /** @description The exit code of the newest ended attempt, 0–255 */
                    exit?: string;
                    /** @description The key it came with */
                    idempotency_key?: string;
                    /** @description `task` or `service` */
                    kind?: string;
                    /** @description `key:value`, `key:one,other`, `key:begins*`, or `key` alone: has the label; several must all match */
                    label?: string[];
                    /** @description Bands of priority, 0–4: 0–19, 20–39, 40–59, 60–79, 80–100 */
                    lane?: string;
                    /** @description 1–500; 100 when left out */
                    limit?: number;
                    /** @description Names, joined by commas; `train*` begins with, `*train*` holds */
                    name?: string;
                    /** @description Names or ids of nodes: where the newest attempt is or was */
                    node?: string;
                    /** @description `kind:id` of what made the job */
                    origin?: string;
                    /** @description How the newest ended attempt ended, such as `failed,timed_out` */
                    outcome?: string;
                    /** @description Owners, joined by commas; `\` takes the next character as it is, here and in every other condition */
                    owner?: string;
                    /** @description Pools */
                    pool?: string;
                    /** @description Part of the id, the name or the command line, in any case */
                    q?: string;
                    /** @description The `reason` as shown, such as `retries_exhausted` or `backing_off` */
                    reason?: string;
                    /** @description The signal that the newest ended attempt died of */
                    signal?: string;
                    /** @description One or more statuses, joined by commas; a leading `!` means none of them, here and in every other condition */
                    status?: string;
                    /** @description Who submitted it */
                    submitted_by?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page; it may be short and still have a next one */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_JobRow"];
                    };
                };
                /** @description A filter that can't be read */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description It took longer than it may: `read_too_slow` */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/jobs/values": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists values that a condition of a filter can have. */
        get: {
            parameters: {
                query: {
                    /** @description `owner`, `name`, `pool`, `node`, `label` for the keys of labels, `label:<key>` for the values of one */
                    key: string;
                    /** @description 1–50; 20 when left out */
                    limit?: number;
                    /** @description What they begin with */
                    prefix?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The first of them */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FilterValues"];
                    };
                };
                /** @description No such key */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description It took longer than it may: `read_too_slow` */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Says who the server takes the caller for. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Who */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Me"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the nodes. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Every node, by name */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_Node"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads one node. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The node */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The node as it is now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Node"];
                    };
                };
                /** @description No such node */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes/{id}/attempts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the un-ended attempts on a node. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The node */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description All of them, oldest job first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_NodeAttempt"];
                    };
                };
                /** @description No such node */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes/{id}/cordon": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Lets no new attempts onto a node; those it has go on. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The node */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The node as it is now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Node"];
                    };
                };
                /** @description No such node */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes/{id}/drain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Says which attempts a drain would move, and where each would find room now. Changes nothing. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The node */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description As it is now; whatever waits besides is not looked at */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DrainPreview"];
                    };
                };
                /** @description No such node */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        /** Empties a node: no new attempts, and those it has move elsewhere at nobody's cost. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The node */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The node as it is now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Node"];
                    };
                };
                /** @description No such node */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes/{id}/uncordon": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Lets attempts onto a node again; also ends a drain. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The node */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The node as it is now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Node"];
                    };
                };
                /** @description No such node */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Serves this description. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OpenAPI 3.1 */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": Record<string, never>;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/pools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the pools. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Every pool, by name */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_Pool"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/pools/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Makes a pool; one that exists is left as it is. */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Its name */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It exists */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Not a name */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schemas/job": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Serves the JSON Schema of what `POST /api/v1/jobs` takes. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description JSON Schema 2020-12 */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/schema+json": Record<string, never>;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begins a session of a token: its cookie stands for the token until the session ends.
         * @description A page elsewhere can't make this call. Other calls by right of the cookie that change something must come from a
         *     page of this server, which browsers say by themselves (`Sec-Fetch-Site`, `Origin`).
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SessionCreate"];
                };
            };
            responses: {
                /** @description It has begun; `Set-Cookie` has the cookie */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Session"];
                    };
                };
                /** @description Faults, all of them named */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description No such token or code, or it was used or is past its end */
                401: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description A page elsewhere asks */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        /** Ends the session of the cookie, if there is one, and takes the cookie away. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description There is no session any more */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description A page elsewhere asks */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sessions/links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes a code that begins one session of the caller's token, within 15 minutes: `/login#<code>` signs a browser in. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The code, which is nowhere else */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Login"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/summary": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts the jobs by status (each count stops at a bound) and adds up the fleet. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The overview */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Summary"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/summary/failing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tells what fails: jobs that failed for good lately and were not retried, grouped by name, owner and how they ended. */
        get: {
            parameters: {
                query?: {
                    /** @description How long ago at most, such as `90s`, `1h` or `7d`; 24 h when left out */
                    within?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The most frequent first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Failing"];
                    };
                };
                /** @description Not a duration */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description It took longer than it may: `read_too_slow` */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/summary/minutes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tells what happened by the minute: jobs submitted, started and ended, and how long they had waited. */
        get: {
            parameters: {
                query?: {
                    /** @description From the minute of this instant (RFC 3339); an hour before `to` when left out */
                    from?: string;
                    /** @description How many minutes are added up into one item, 1–1,440; 1 when left out */
                    step?: number;
                    /** @description Before this instant; now when left out */
                    to?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description At most 1,500 items */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Minutes"];
                    };
                };
                /** @description Not a span of time, or too many items */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description It took longer than it may: `read_too_slow` */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/summary/waiting": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the jobs that have waited longest, and why: of each pool, owner, shape and priority the first in turn. */
        get: {
            parameters: {
                query?: {
                    /** @description 1–20; 10 when left out */
                    limit?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The longest first */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_WaitingJob"];
                    };
                };
                /** @description It took longer than it may: `read_too_slow` */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the tokens, newest first, without their secrets. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Every token */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_Token"];
                    };
                };
            };
        };
        put?: never;
        /** Makes a token. Its secret is in this answer and never again. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TokenCreate"];
                };
            };
            responses: {
                /** @description The token and its secret */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TokenCreated"];
                    };
                };
                /** @description Faults, all of them named */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revokes a token; it stops working at once. */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The token */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is revoked */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description No such token */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/trees/{sha256}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Downloads a tree's manifest; its files are artifacts. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description 64 lower-case hex digits */
                    sha256: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The manifest */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": Record<string, never>;
                    };
                };
                /** @description No such tree */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        /**
         * Makes a tree known by its manifest, once all of its files are uploaded. Repeatable without harm.
         * @description A manifest is JSON without space, fields and paths in this order: `{"tree":1,"files":{"<path>":{"sha256":"<hex>",
         *     "size":<bytes>,"mode":"0644"},…}}`, where `mode` is `0755` for a program. Its SHA-256 is the tree's name.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description 64 lower-case hex digits: of the manifest */
                    sha256: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, never>;
                };
            };
            responses: {
                /** @description It was known already */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Tree"];
                    };
                };
                /** @description Known and durable */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Tree"];
                    };
                };
                /** @description It is no manifest, or not that of this name; nothing was kept */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description Files are missing; `errors` names some of them. Ask with `POST /artifacts/missing`, upload them, and send it again */
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description Too large */
                413: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        /** Says whether a tree is known. */
        head: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description 64 lower-case hex digits */
                    sha256: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is known, with all its files */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description It isn't */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        patch?: never;
        trace?: never;
    };
    "/api/v1/views": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists one's own views and the shared ones, by name. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description All that the caller sees */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Page_View"];
                    };
                };
            };
        };
        put?: never;
        /** Keeps a view. */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ViewWrite"];
                };
            };
            responses: {
                /** @description It is kept; `ETag` says which version it has */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["View"];
                    };
                };
                /** @description Faults, all of them named */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description One of the caller's views has that name */
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/views/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Changes a view. With `If-Match` only if it still has that `ETag`; without, the last write wins. */
        put: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The `ETag` it was seen with */
                    "If-Match"?: string | null;
                };
                path: {
                    /** @description The view */
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ViewWrite"];
                };
            };
            responses: {
                /** @description As it is now */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["View"];
                    };
                };
                /** @description Faults, all of them named */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description Somebody else's */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description No such view */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description Another view of its maker has that name */
                409: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description It was changed since */
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        post?: never;
        /** Removes a view; `If-Match` as when it is changed. */
        delete: {
            parameters: {
                query?: never;
                header?: {
                    /** @description The `ETag` it was seen with */
                    "If-Match"?: string | null;
                };
                path: {
                    /** @description The view */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is gone */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                /** @description Somebody else's */
                403: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description No such view */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
                /** @description It was changed since */
                412: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Says that the process lives. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It lives */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The process's metrics, in Prometheus' format. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OpenMetrics text */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Says whether the server can serve: it reaches its datastore and is not going down. */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It can serve; a second line says what is wrong with the artifact store, if something is */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": string;
                    };
                };
                /** @description It can't */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Problem"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description An immutable file in the artifact store. */
        Artifact: {
            /** @description SHA-256 of its bytes, 64 lower-case hex digits; its name. */
            sha256: string;
            /**
             * Format: int64
             * @description How many bytes it has.
             */
            size_bytes: number;
        };
        /** @description Many small artifacts in one call: what the first line of its body says. Their bytes follow in the same order. */
        ArtifactBatch: {
            /** @description At most 1,000 files. */
            files: components["schemas"]["BatchedArtifact"][];
        };
        /** @description Artifacts that somebody asks about. */
        ArtifactNames: {
            /** @description At most 1,000 names, 64 lower-case hex digits each. */
            sha256: string[];
        };
        /** @description What one call with many artifacts stored. */
        ArtifactsStored: {
            /**
             * Format: int32
             * @description How many files.
             */
            files: number;
            /**
             * Format: int64
             * @description How many bytes they have together.
             */
            size_bytes: number;
        };
        /** @description One try at running a job on one node. Its lease is never shown. */
        Attempt: {
            accepted_time?: components["schemas"]["Time"] | null;
            ended_by?: components["schemas"]["EndedBy"] | null;
            /**
             * Format: int32
             * @description The code its task process left with.
             */
            exit_code?: number | null;
            finished_time?: components["schemas"]["Time"] | null;
            /** @description What is wanted of it. */
            intent: components["schemas"]["Intent"];
            last_exit?: components["schemas"]["ServiceExit"] | null;
            lease_until?: components["schemas"]["Time"] | null;
            /** @description Why it ended, in plain words; empty when there is nothing to say. */
            message: string;
            next_start?: components["schemas"]["Time"] | null;
            /**
             * Format: uuid
             * @description Where.
             */
            node_id: string;
            /** @description The node's name; empty when the node is no longer known. */
            node_name: string;
            /**
             * Format: int32
             * @description From 1, never reused within a job.
             */
            number: number;
            outcome?: components["schemas"]["Outcome"] | null;
            phase?: components["schemas"]["Phase"] | null;
            /** @description When it was claimed. */
            placed_time: components["schemas"]["Time"];
            /**
             * Format: int32
             * @description Of a service: how often its task process was started again.
             */
            restarts?: number;
            /**
             * Format: int32
             * @description The round it belongs to.
             */
            round: number;
            /**
             * Format: int32
             * @description The signal its task process died of.
             */
            signal?: number | null;
            started_time?: components["schemas"]["Time"] | null;
            usage?: components["schemas"]["Usage"] | null;
        };
        /** @description One changing call. */
        Audit: {
            /** @description Such as `job.submit`. */
            action: string;
            /** @description From where. */
            address: string;
            /** @description Such as how many. */
            detail: string;
            /**
             * Format: int64
             * @description Ascending.
             */
            number: number;
            /** @description An id or a name. */
            target: string;
            /** @description When. */
            time: components["schemas"]["Time"];
            /** @description Who. */
            who: string;
        };
        /** @description What became of a batch. */
        BatchAccepted: {
            /** @description One a job, in order. */
            items: components["schemas"]["BatchItem"][];
            /** @description What was accepted but looks wrong. */
            warnings?: string[];
        };
        /** @description One of many artifacts. */
        BatchedArtifact: {
            /** @description SHA-256 of its bytes, 64 lower-case hex digits; its name. */
            sha256: string;
            /**
             * Format: int64
             * @description How many bytes it has.
             */
            size: number;
        };
        /** @description One job of a batch. */
        BatchItem: {
            /** @description `false`: the key was used before. */
            created: boolean;
            /**
             * Format: uuid
             * @description The job's id; the first one's when the key was used before.
             */
            id: string;
        };
        /** @description Up to 10,000 jobs, accepted all or none. */
        BatchSubmit: {
            /** @description The jobs. */
            jobs: components["schemas"]["JobSubmit"][];
        };
        /** @description An action on every job that a filter passes, carried out in the background. */
        Bulk: {
            /** @description `cancel` or `retry`. */
            action: string;
            /**
             * Format: int64
             * @description Jobs that it changed.
             */
            changed: number;
            /** @description Who began it. */
            created_by: string;
            /** @description When. Jobs that were created later are not touched. */
            created_time: components["schemas"]["Time"];
            /** @description As it was given. */
            filter: string;
            finished_time?: components["schemas"]["Time"] | null;
            /** @description Which. */
            id: string;
            /**
             * Format: int64
             * @description Jobs that it acted on: `changed` and `unchanged`.
             */
            looked_at: number;
            /** @description `running`, `done` or `stopped`. */
            status: string;
            /**
             * Format: int64
             * @description Jobs that had moved on, or were as they were meant to be.
             */
            unchanged: number;
        };
        /** @description How many jobs an action would act on, of those that the caller may touch. */
        BulkPreview: {
            /** @description There are more than 10,000. */
            capped: boolean;
            /** @description `false`: only a bounded number of the newest jobs was looked at, or `capped`; there may be more. */
            complete: boolean;
            /**
             * Format: int64
             * @description At most 10,000.
             */
            matching: number;
        };
        /** @description An action to be begun, or to be looked at first. */
        BulkRequest: {
            /** @description `cancel` or `retry`. */
            action: string;
            /** @description Only count the jobs that it would act on. */
            dry_run?: boolean;
            /**
             * @description Which jobs: a query string with the conditions of `GET /api/v1/jobs`, such as `status=final_failed&label=team:rev`;
             *     at least one.
             */
            filter: string;
            /** @description The same key again begins nothing anew. */
            idempotency_key?: string | null;
        };
        /** @description Memory: a number of bytes, or on the way in a text with a unit. */
        Bytes: number | string;
        /** @description Cores, in steps of a thousandth. */
        Cores: number;
        /** @description An attempt that would have to leave, and where its job would be placed next. */
        DrainMove: components["schemas"]["NodeAttempt"] & {
            /**
             * Format: uuid
             * @description The node with room for it now; absent when it would wait.
             */
            to_node_id?: string | null;
            /** @description That node's name. */
            to_node_name?: string | null;
        };
        /** @description What a drain would do, were it begun now. */
        DrainPreview: {
            /**
             * Format: int32
             * @description How many un-ended attempts the node has.
             */
            attempts: number;
            /** @description Those that would have to leave; the others are being stopped anyway. */
            moves: components["schemas"]["DrainMove"][];
            /**
             * Format: int32
             * @description How many of these would have to wait for room.
             */
            would_wait: number;
        };
        /** @enum {string} */
        EndedBy: "itself" | "stop" | "timeout" | "memory" | "shutdown" | "lease";
        /**
         * @description One change of a job's status, of its attempt's phase, or of what is wanted. The data of a server-sent event of the
         *     type `change`.
         */
        Event: {
            /**
             * Format: int32
             * @description The attempt it belongs to.
             */
            attempt?: number | null;
            /**
             * @description Its place in the history: transaction and number. Also the server-sent event's `id`.
             * @example 812-4031
             */
            cursor: string;
            /** @description A status or phase, or what was wanted; empty for the creation. */
            from: string;
            /**
             * Format: uuid
             * @description Which job.
             */
            job_id: string;
            /** @description When. */
            time: components["schemas"]["Time"];
            /** @description A status or phase, or what is wanted. */
            to: string;
            /** @description A principal or one of our roles. */
            who: string;
            /** @description In plain words, or an outcome. */
            why: string;
        };
        /** @description What fails. */
        Failing: {
            /** @description `false`: more failed than is looked at, or in more ways. */
            complete: boolean;
            /** @description At most 50, the most frequent first. */
            items: components["schemas"]["FailingGroup"][];
        };
        /** @description Jobs that failed for good in the same way and were not retried since. */
        FailingGroup: {
            /**
             * Format: int64
             * @description How many there are.
             */
            count: number;
            /**
             * Format: int32
             * @description The code it left with.
             */
            exit_code?: number | null;
            /** @description The filter that finds them, as a query string. */
            filter: string;
            /**
             * Format: uuid
             * @description The newest of them.
             */
            last_job_id: string;
            /** @description When that one failed. */
            last_time: components["schemas"]["Time"];
            /** @description Their name. */
            name: string;
            outcome?: components["schemas"]["Outcome"] | null;
            /** @description Their owner. */
            owner_id: string;
            /** @description Why they are over. */
            reason: string;
            /**
             * Format: int32
             * @description The signal it died of.
             */
            signal?: number | null;
        };
        /** @description Values that a condition of a filter can have. */
        FilterValues: {
            /** @description In the order of their bytes. */
            items: string[];
            /** @description There are more that begin with the prefix. */
            more: boolean;
        };
        /** @description How the roles fare, by the datastore's clock. */
        Health: {
            informer_time?: components["schemas"]["Time"] | null;
            /**
             * Format: int64
             * @description How long the datastore took to answer, in milliseconds.
             */
            reading_ms: number;
            report_door_time?: components["schemas"]["Time"] | null;
        };
        /** @enum {string} */
        Intent: "run" | "evict" | "stop" | "cancel";
        /** @enum {string} */
        IoClass: "cpu" | "io" | "mixed";
        /** @description A job: what was submitted, where it is, what came of it. */
        Job: {
            /**
             * Format: int32
             * @description The newest attempt's number; absent before the first.
             */
            attempt?: number | null;
            /** @description Delay before the first retry; doubles with each. */
            backoff: components["schemas"]["Seconds"];
            /** @description The executable; absent when `command[0]` names one that the node has. */
            binary_url?: string | null;
            /** @description The program and its arguments, or with `binary_url` the arguments. */
            command: string[];
            /** @description When it was accepted. */
            created_time: components["schemas"]["Time"];
            /** @description The environment of its task process; absent for those who don't act for its owner. */
            env?: {
                [key: string]: string;
            } | null;
            /**
             * Format: int32
             * @description How often it had to leave a node in this round.
             */
            evictions: number;
            /** @description At most one live attempt, ever. */
            exclusive: boolean;
            finished_time?: components["schemas"]["Time"] | null;
            /**
             * Format: uuid
             * @description UUIDv7.
             */
            id: string;
            /** @description The key it came with. */
            idempotency_key?: string | null;
            /** @description What is staged for each attempt. */
            input_path?: string | null;
            /** @description What is wanted of it. */
            intent: components["schemas"]["Intent"];
            /** @description Where its time goes. */
            io_class: components["schemas"]["IoClass"];
            /** @description Task or service. */
            kind: components["schemas"]["JobKind"];
            /** @description For people and filters. */
            labels: {
                [key: string]: string;
            };
            last_exit?: components["schemas"]["ServiceExit"] | null;
            /**
             * Format: int32
             * @description How many they may cost.
             */
            max_retries: number;
            /** @description For people; need not be unique. */
            name: string;
            next_start?: components["schemas"]["Time"] | null;
            /** @description Exit codes after which another attempt is pointless. */
            no_retry_exit_codes: number[];
            /** @description What its node must be labelled with. */
            node_labels: {
                [key: string]: string;
            };
            origin?: components["schemas"]["JobOrigin"] | null;
            /** @description Where in S3 its outputs go; absent when they go into the artifact store. */
            output_path?: string | null;
            /** @description The team that is accounted for. */
            owner_id: string;
            /**
             * Format: int32
             * @description Retries that the platform's failures cost in this round.
             */
            platform_failures: number;
            /** @description The pool it waits in. */
            pool: string;
            /** @description Whether more urgent jobs may take its place. */
            preemptible: boolean;
            /**
             * Format: int32
             * @description 0–100, more is more urgent.
             */
            priority: number;
            /**
             * @description Beside the status: the phase while it runs (`restarting` while a service waits for its next start), why it waits
             *     or ended; empty when there is nothing to add.
             */
            reason: string;
            /** @description What placement reserves. */
            resources: components["schemas"]["JobResources"];
            /**
             * Format: int32
             * @description Of a service: how often its task process was started again in the newest attempt.
             */
            restarts?: number;
            result?: components["schemas"]["JobResult"] | null;
            /**
             * Format: int32
             * @description Retries that its own failures cost in this round.
             */
            retry_count: number;
            /**
             * Format: int32
             * @description From 1; one more with each retry by hand.
             */
            round: number;
            run_at?: components["schemas"]["Time"] | null;
            /** @description How its task process is isolated. */
            runtime: components["schemas"]["Runtime"];
            start_within?: components["schemas"]["Seconds"] | null;
            started_time?: components["schemas"]["Time"] | null;
            /** @description Where it is. */
            status: components["schemas"]["Status"];
            /** @description Between TERM and KILL. */
            stop_grace: components["schemas"]["Seconds"];
            /** @description Who submitted it. */
            submitted_by: string;
            timeout?: components["schemas"]["Seconds"] | null;
            /** @description What was accepted but looks wrong. Only in the answer to a submission. */
            warnings?: string[];
        };
        /** @description A job that would be accepted, and what would become of it. */
        JobCheck: {
            /** @description Whose it would be. */
            owner_id: string;
            /** @description What can be accepted but looks wrong. */
            warnings: string[];
            /** @description What it would wait for. */
            why: components["schemas"]["Why"];
        };
        /** @description How many jobs a filter passes. */
        JobCount: {
            /** @description Those that were counted, by status; one for each status. */
            by_status: components["schemas"]["StatusCount"][];
            /** @description There are more than 10,000. */
            capped: boolean;
            /** @description `false`: only a bounded number of the newest jobs was looked at, or `capped`; there may be more. */
            complete: boolean;
            /**
             * Format: int64
             * @description At most 10,000.
             */
            count: number;
        };
        /** @enum {string} */
        JobKind: "task" | "service";
        /** @description What made a job, when that was no person. */
        JobOrigin: {
            /** @description Which one. */
            id: string;
            /** @description Which occurrence or step of it. */
            key: string;
            /** @description Such as `schedule`. */
            kind: string;
        };
        /** @description What placement reserves for a job. */
        JobResources: {
            /** @description Cores: a weight between neighbours, not a cap. */
            cpu: components["schemas"]["Cores"];
            cpu_limit?: components["schemas"]["Cores"] | null;
            /** @description Bytes; enforced where the node's containment can. */
            memory: components["schemas"]["Bytes"];
        };
        /** @description How an attempt ended. */
        JobResult: {
            /**
             * Format: int32
             * @description The attempt's number.
             */
            attempt: number;
            /**
             * Format: int32
             * @description The code its task process left with.
             */
            exit_code?: number | null;
            /** @description Why, in plain words; empty when there is nothing to say. */
            message: string;
            /** @description How it ended. */
            outcome: components["schemas"]["Outcome"];
            /**
             * @description What it left in `JOBYARD_OUTPUT`: `sha256:<hex>`, a tree, or with `output_path` the folder in S3,
             *     `<output_path>/<job>/<attempt>/`. Absent when it left nothing, did not succeed, and for those who don't act for its
             *     owner.
             */
            output?: string | null;
            /**
             * Format: int32
             * @description The signal its task process died of.
             */
            signal?: number | null;
            usage?: components["schemas"]["Usage"] | null;
        };
        /** @description A job as a line of a list: nothing of what was submitted to be executed. */
        JobRow: {
            /**
             * Format: int32
             * @description The newest attempt's number; absent before the first.
             */
            attempt?: number | null;
            /** @description When it was accepted. */
            created_time: components["schemas"]["Time"];
            /**
             * Format: int32
             * @description The code its task process left with.
             */
            exit_code?: number | null;
            finished_time?: components["schemas"]["Time"] | null;
            /**
             * Format: uuid
             * @description UUIDv7.
             */
            id: string;
            /** @description What is wanted of it. */
            intent: components["schemas"]["Intent"];
            /** @description Task or service. */
            kind: components["schemas"]["JobKind"];
            /** @description For people and filters. */
            labels: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description How many they may cost.
             */
            max_retries: number;
            /** @description Why it ended, in plain words; at most 200 characters, empty when there is nothing to say. */
            message: string;
            /** @description For people; need not be unique. */
            name: string;
            /**
             * Format: uuid
             * @description The node of the newest attempt.
             */
            node_id?: string | null;
            /** @description That node's name; absent when it is not known any more. */
            node_name?: string | null;
            outcome?: components["schemas"]["Outcome"] | null;
            /** @description The team that is accounted for. */
            owner_id: string;
            /** @description The pool it waits in. */
            pool: string;
            /**
             * Format: int32
             * @description 0–100, more is more urgent.
             */
            priority: number;
            /** @description Beside the status, as in a job. */
            reason: string;
            /**
             * Format: int32
             * @description Retries that its own failures cost in this round.
             */
            retry_count: number;
            /**
             * Format: int32
             * @description From 1; one more with each retry by hand.
             */
            round: number;
            /**
             * Format: int32
             * @description The signal its task process died of.
             */
            signal?: number | null;
            started_time?: components["schemas"]["Time"] | null;
            /** @description Where it is. */
            status: components["schemas"]["Status"];
            /** @description Who submitted it. */
            submitted_by: string;
            waiting_since_time?: components["schemas"]["Time"] | null;
        };
        /**
         * @description A job to be submitted. What is left out gets its default; unknown and doubled fields are refused.
         *
         *     The order of the fields is part of the contract: the idempotency hash is taken over this type's JSON (see
         *     [`crate::submit::ParsedJob::hash`]), so new fields go to the end and are skipped when absent.
         */
        JobSubmit: {
            backoff?: components["schemas"]["Seconds"] | null;
            /**
             * @description `sha256:<hex>` in the artifact store; `s3://<bucket>/<key>` or `file:///…` where the server's settings allow it.
             * @example sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
             */
            binary_url?: string | null;
            /** @description The program and its arguments; with `binary_url` the arguments. */
            command?: string[];
            /** @description The environment of the task process, besides `PATH` and `JOBYARD_*`. */
            env?: {
                [key: string]: string;
            };
            /** @description At most one live attempt, ever; needs a `stop_grace` of at most a third of the lease. */
            exclusive?: boolean | null;
            /** @description The same key with the same job gives the same job again; with another job it is refused. */
            idempotency_key?: string | null;
            /**
             * @description `sha256:<hex>`: a tree, staged read-only as the folder `JOBYARD_INPUT`, or an artifact, which lies in that folder
             *     as `artifact`. Where the server's settings allow it `s3://<bucket>/<key>/`: all objects below that, or without
             *     the last `/` one object, under its own name.
             * @example sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
             */
            input_path?: string | null;
            io_class?: components["schemas"]["IoClass"] | null;
            kind?: components["schemas"]["JobKind"] | null;
            /** @description For people and filters. */
            labels?: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description How many retries its own failures may cost; 3 when left out. Without effect on a service.
             */
            max_retries?: number | null;
            /** @description For people; the last path part of the program when left out. */
            name?: string | null;
            /** @description Exit codes (1–255) after which another attempt, or a restart of a service, is pointless. */
            no_retry_exit_codes?: number[];
            /** @description What its node must be labelled with. */
            node_labels?: {
                [key: string]: string;
            };
            origin?: components["schemas"]["JobOrigin"] | null;
            /**
             * @description `s3://<bucket>/<key>` where the server's settings allow it: what it leaves in `JOBYARD_OUTPUT` goes there, below
             *     `<job>/<attempt>/`, `_manifest.json` last, instead of into the artifact store.
             * @example s3://results/search
             */
            output_path?: string | null;
            /** @description The team that is accounted for; the token's first owner when left out. */
            owner_id?: string | null;
            /** @description The pool to wait in; `default` when left out. */
            pool?: string | null;
            /** @description Whether more urgent jobs may take its place. */
            preemptible?: boolean | null;
            /**
             * Format: int32
             * @description 0–100, more is more urgent; when left out 50 for a task, 75 for a service.
             */
            priority?: number | null;
            resources?: components["schemas"]["ResourcesSubmit"] | null;
            run_at?: components["schemas"]["Time"] | null;
            runtime?: components["schemas"]["Runtime"] | null;
            /**
             * @description Secrets for the environment of the task process, beside `env`. Kept encrypted, and handed to the task alone: no
             *     answer, event or log has them. With the idempotency key other secrets are another job.
             */
            secret_env?: {
                [key: string]: string;
            };
            start_within?: components["schemas"]["Seconds"] | null;
            stop_grace?: components["schemas"]["Seconds"] | null;
            timeout?: components["schemas"]["Seconds"] | null;
        };
        /** @description A code that begins one session of the caller's token. */
        Login: {
            /** @description Until when it can be used. */
            expires_time: components["schemas"]["Time"];
            /** @description The code; the dashboard takes it as `/login#<code>`. */
            login: string;
        };
        /** @description One place where the text stands. */
        LogMatch: {
            /**
             * Format: int32
             * @description How many bytes match.
             */
            length: number;
            /** @description The line around it, of a long one 512 bytes before and after; what is no UTF-8 is replaced. */
            line: string;
            /**
             * Format: int64
             * @description The line's number from 1; absent when the search did not begin at the log's beginning.
             */
            line_number?: number | null;
            /**
             * Format: int64
             * @description Offset in the stream of the first byte of `line`.
             */
            line_offset: number;
            /**
             * Format: int64
             * @description Offset in the stream of the first byte that matches.
             */
            offset: number;
            /** @description `stdout` or `stderr`. */
            stream: string;
        };
        /** @description Consecutive bytes of one stream that were read at one time. */
        LogPiece: {
            /**
             * Format: int64
             * @description Offset in the stream of the first byte.
             */
            from: number;
            /**
             * Format: int64
             * @description The order of arrival within the attempt, over both streams; any of them is a cursor.
             */
            number: number;
            /** @description `stdout` or `stderr`. */
            stream: string;
            /** @description When the first byte was read, by the node's clock. */
            time: components["schemas"]["Time"];
            /**
             * Format: int64
             * @description Offset in the stream after the last byte.
             */
            to: number;
        };
        /** @description A place in a log. */
        LogPlace: {
            /**
             * Format: int64
             * @description Offset in the stream.
             */
            offset: number;
            /** @description `stdout` or `stderr`. */
            stream: string;
        };
        /** @description What was found, and how far was looked. */
        LogSearch: {
            /** @description By stream and offset. */
            items: components["schemas"]["LogMatch"][];
            /** @description Give this as `cursor` to go on looking; absent at the log's end. */
            next_cursor?: string | null;
            /** @description Nothing else is to be found before this place. */
            scanned_to: components["schemas"]["LogPlace"];
        };
        /** @description How long the log of an attempt is. */
        LogSizes: {
            /**
             * Format: int32
             * @description Which attempt.
             */
            attempt: number;
            /** @description Nothing more comes. */
            over: boolean;
            /**
             * Format: int64
             * @description Bytes of standard error.
             */
            stderr: number;
            /**
             * Format: int64
             * @description Bytes of standard output.
             */
            stdout: number;
        };
        /** @description Who makes the call. */
        Me: {
            /** @description The principal's name. */
            name: string;
            /** @description The owners it acts for; the first is the default. Operators and admins act for all. */
            owners: string[];
            /** @description What it may do. */
            role: components["schemas"]["Role"];
        };
        /** @description What happened by the minute. */
        Minutes: {
            /** @description Up to when everything is counted; later spans are counted in part, or not yet. */
            complete_until_time: components["schemas"]["Time"];
            /** @description In order, none left out. */
            items: components["schemas"]["MinuteSpan"][];
        };
        /** @description What happened in a span of minutes. */
        MinuteSpan: {
            /** @description Jobs that came to an end, by their status then: `success`, `final_failed`, `cancelled`. */
            ended: {
                [key: string]: number;
            };
            /** @description Attempts that ended, by their outcome; those that are 0 are left out. */
            outcomes: {
                [key: string]: number;
            };
            /**
             * Format: int64
             * @description Attempts whose task process began.
             */
            started: number;
            /**
             * Format: int64
             * @description Jobs that were accepted.
             */
            submitted: number;
            /** @description Its beginning. */
            time: components["schemas"]["Time"];
            /** @description How long jobs had waited when they were placed. */
            waits: components["schemas"]["WaitTimes"];
        };
        /** @description Those that have to be uploaded. */
        MissingArtifacts: {
            /** @description In the order in which they were asked for, each once. */
            missing: string[];
        };
        /** @description A node, as the datastore knows it. */
        Node: {
            /**
             * Format: int32
             * @description How many attempts it has.
             */
            attempts: number;
            /** @description Whether it was heard of lately, is open, and is neither suspended nor quarantined. */
            available: boolean;
            /** @description What it offers. */
            capacity: components["schemas"]["NodeResources"];
            /** @description `cgroup`, `pidns` or `subreaper`: what keeps a task's processes together there. */
            containment: string;
            /** @description What operators let onto it. */
            gate: components["schemas"]["NodeGate"];
            /** @description Its last heartbeat. */
            heard_time: components["schemas"]["Time"];
            /**
             * Format: uuid
             * @description Which.
             */
            id: string;
            /** @description What it is labelled with. */
            labels: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description The most it takes at a time.
             */
            max_attempts: number;
            /** @description The host name. */
            name: string;
            /** @description The pool it serves. */
            pool: string;
            /** @description Why it gets no attempts until an operator has looked at it. */
            quarantined?: string | null;
            /** @description What its attempts reserve. */
            reserved: components["schemas"]["NodeResources"];
            /** @description How it can isolate. */
            runtimes: components["schemas"]["Runtime"][];
            /** @description Why it gets no attempts until its worker has proven itself. */
            suspended?: string | null;
            /** @description Its worker's version. */
            version: string;
        };
        /** @description An un-ended attempt on a node, and what one wants to know of its job there. */
        NodeAttempt: {
            /** @description Never two at a time. */
            exclusive: boolean;
            /** @description What is wanted of it. */
            intent: components["schemas"]["Intent"];
            /**
             * Format: uuid
             * @description Whose attempt it is.
             */
            job_id: string;
            /** @description The job's name. */
            job_name: string;
            /** @description Whether it is meant to end. */
            kind: components["schemas"]["JobKind"];
            /** @description When its lease runs out unless it is renewed. */
            lease_until: components["schemas"]["Time"];
            /**
             * Format: int32
             * @description The attempt's number.
             */
            number: number;
            /** @description The team that is accounted for. */
            owner_id: string;
            /** @description Where it is. */
            phase: components["schemas"]["Phase"];
            /** @description When it was claimed. */
            placed_time: components["schemas"]["Time"];
            /**
             * Format: int32
             * @description 0–100, more is more urgent.
             */
            priority: number;
            /** @description What it reserves. */
            resources: components["schemas"]["NodeResources"];
            started_time?: components["schemas"]["Time"] | null;
        };
        /** @enum {string} */
        NodeGate: "open" | "cordoned" | "draining";
        /** @description Amounts of a node, or of several. */
        NodeResources: {
            /** @description Cores. */
            cpu: components["schemas"]["Cores"];
            /** @description Bytes. */
            memory: components["schemas"]["Bytes"];
        };
        /** @enum {string} */
        Outcome: "succeeded" | "failed" | "timed_out" | "oom_killed" | "lost" | "launch_failed" | "not_started" | "evicted" | "stopped" | "cancelled";
        /** @description A page. It may be short, even empty, and still have a next one: what one page scans is bounded. */
        Page_Attempt: {
            /** @description In the order of the list. */
            items: {
                accepted_time?: components["schemas"]["Time"] | null;
                ended_by?: components["schemas"]["EndedBy"] | null;
                /**
                 * Format: int32
                 * @description The code its task process left with.
                 */
                exit_code?: number | null;
                finished_time?: components["schemas"]["Time"] | null;
                /** @description What is wanted of it. */
                intent: components["schemas"]["Intent"];
                last_exit?: components["schemas"]["ServiceExit"] | null;
                lease_until?: components["schemas"]["Time"] | null;
                /** @description Why it ended, in plain words; empty when there is nothing to say. */
                message: string;
                next_start?: components["schemas"]["Time"] | null;
                /**
                 * Format: uuid
                 * @description Where.
                 */
                node_id: string;
                /** @description The node's name; empty when the node is no longer known. */
                node_name: string;
                /**
                 * Format: int32
                 * @description From 1, never reused within a job.
                 */
                number: number;
                outcome?: components["schemas"]["Outcome"] | null;
                phase?: components["schemas"]["Phase"] | null;
                /** @description When it was claimed. */
                placed_time: components["schemas"]["Time"];
                /**
                 * Format: int32
                 * @description Of a service: how often its task process was started again.
                 */
                restarts?: number;
                /**
                 * Format: int32
                 * @description The round it belongs to.
                 */
                round: number;
                /**
                 * Format: int32
                 * @description The signal its task process died of.
                 */
                signal?: number | null;
                started_time?: components["schemas"]["Time"] | null;
                usage?: components["schemas"]["Usage"] | null;
            }[];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
        };
        /** @description A page. It may be short, even empty, and still have a next one: what one page scans is bounded. */
        Page_Audit: {
            /** @description In the order of the list. */
            items: {
                /** @description Such as `job.submit`. */
                action: string;
                /** @description From where. */
                address: string;
                /** @description Such as how many. */
                detail: string;
                /**
                 * Format: int64
                 * @description Ascending.
                 */
                number: number;
                /** @description An id or a name. */
                target: string;
                /** @description When. */
                time: components["schemas"]["Time"];
                /** @description Who. */
                who: string;
            }[];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
        };
        /** @description A page. It may be short, even empty, and still have a next one: what one page scans is bounded. */
        Page_Bulk: {
            /** @description In the order of the list. */
            items: {
                /** @description `cancel` or `retry`. */
                action: string;
                /**
                 * Format: int64
                 * @description Jobs that it changed.
                 */
                changed: number;
                /** @description Who began it. */
                created_by: string;
                /** @description When. Jobs that were created later are not touched. */
                created_time: components["schemas"]["Time"];
                /** @description As it was given. */
                filter: string;
                finished_time?: components["schemas"]["Time"] | null;
                /** @description Which. */
                id: string;
                /**
                 * Format: int64
                 * @description Jobs that it acted on: `changed` and `unchanged`.
                 */
                looked_at: number;
                /** @description `running`, `done` or `stopped`. */
                status: string;
                /**
                 * Format: int64
                 * @description Jobs that had moved on, or were as they were meant to be.
                 */
                unchanged: number;
            }[];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
        };
        /** @description A page. It may be short, even empty, and still have a next one: what one page scans is bounded. */
        Page_Event: {
            /** @description In the order of the list. */
            items: {
                /**
                 * Format: int32
                 * @description The attempt it belongs to.
                 */
                attempt?: number | null;
                /**
                 * @description Its place in the history: transaction and number. Also the server-sent event's `id`.
                 * @example 812-4031
                 */
                cursor: string;
                /** @description A status or phase, or what was wanted; empty for the creation. */
                from: string;
                /**
                 * Format: uuid
                 * @description Which job.
                 */
                job_id: string;
                /** @description When. */
                time: components["schemas"]["Time"];
                /** @description A status or phase, or what is wanted. */
                to: string;
                /** @description A principal or one of our roles. */
                who: string;
                /** @description In plain words, or an outcome. */
                why: string;
            }[];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
        };
        /** @description A page. It may be short, even empty, and still have a next one: what one page scans is bounded. */
        Page_Job: {
            /** @description In the order of the list. */
            items: {
                /**
                 * Format: int32
                 * @description The newest attempt's number; absent before the first.
                 */
                attempt?: number | null;
                /** @description Delay before the first retry; doubles with each. */
                backoff: components["schemas"]["Seconds"];
                /** @description The executable; absent when `command[0]` names one that the node has. */
                binary_url?: string | null;
                /** @description The program and its arguments, or with `binary_url` the arguments. */
                command: string[];
                /** @description When it was accepted. */
                created_time: components["schemas"]["Time"];
                /** @description The environment of its task process; absent for those who don't act for its owner. */
                env?: {
                    [key: string]: string;
                } | null;
                /**
                 * Format: int32
                 * @description How often it had to leave a node in this round.
                 */
                evictions: number;
                /** @description At most one live attempt, ever. */
                exclusive: boolean;
                finished_time?: components["schemas"]["Time"] | null;
                /**
                 * Format: uuid
                 * @description UUIDv7.
                 */
                id: string;
                /** @description The key it came with. */
                idempotency_key?: string | null;
                /** @description What is staged for each attempt. */
                input_path?: string | null;
                /** @description What is wanted of it. */
                intent: components["schemas"]["Intent"];
                /** @description Where its time goes. */
                io_class: components["schemas"]["IoClass"];
                /** @description Task or service. */
                kind: components["schemas"]["JobKind"];
                /** @description For people and filters. */
                labels: {
                    [key: string]: string;
                };
                last_exit?: components["schemas"]["ServiceExit"] | null;
                /**
                 * Format: int32
                 * @description How many they may cost.
                 */
                max_retries: number;
                /** @description For people; need not be unique. */
                name: string;
                next_start?: components["schemas"]["Time"] | null;
                /** @description Exit codes after which another attempt is pointless. */
                no_retry_exit_codes: number[];
                /** @description What its node must be labelled with. */
                node_labels: {
                    [key: string]: string;
                };
                origin?: components["schemas"]["JobOrigin"] | null;
                /** @description Where in S3 its outputs go; absent when they go into the artifact store. */
                output_path?: string | null;
                /** @description The team that is accounted for. */
                owner_id: string;
                /**
                 * Format: int32
                 * @description Retries that the platform's failures cost in this round.
                 */
                platform_failures: number;
                /** @description The pool it waits in. */
                pool: string;
                /** @description Whether more urgent jobs may take its place. */
                preemptible: boolean;
                /**
                 * Format: int32
                 * @description 0–100, more is more urgent.
                 */
                priority: number;
                /**
                 * @description Beside the status: the phase while it runs (`restarting` while a service waits for its next start), why it waits
                 *     or ended; empty when there is nothing to add.
                 */
                reason: string;
                /** @description What placement reserves. */
                resources: components["schemas"]["JobResources"];
                /**
                 * Format: int32
                 * @description Of a service: how often its task process was started again in the newest attempt.
                 */
                restarts?: number;
                result?: components["schemas"]["JobResult"] | null;
                /**
                 * Format: int32
                 * @description Retries that its own failures cost in this round.
                 */
                retry_count: number;
                /**
                 * Format: int32
                 * @description From 1; one more with each retry by hand.
                 */
                round: number;
                run_at?: components["schemas"]["Time"] | null;
                /** @description How its task process is isolated. */
                runtime: components["schemas"]["Runtime"];
                start_within?: components["schemas"]["Seconds"] | null;
                started_time?: components["schemas"]["Time"] | null;
                /** @description Where it is. */
                status: components["schemas"]["Status"];
                /** @description Between TERM and KILL. */
                stop_grace: components["schemas"]["Seconds"];
                /** @description Who submitted it. */
                submitted_by: string;
                timeout?: components["schemas"]["Seconds"] | null;
                /** @description What was accepted but looks wrong. Only in the answer to a submission. */
                warnings?: string[];
            }[];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
        };
        /** @description A page. It may be short, even empty, and still have a next one: what one page scans is bounded. */
        Page_JobRow: {
            /** @description In the order of the list. */
            items: {
                /**
                 * Format: int32
                 * @description The newest attempt's number; absent before the first.
                 */
                attempt?: number | null;
                /** @description When it was accepted. */
                created_time: components["schemas"]["Time"];
                /**
                 * Format: int32
                 * @description The code its task process left with.
                 */
                exit_code?: number | null;
                finished_time?: components["schemas"]["Time"] | null;
                /**
                 * Format: uuid
                 * @description UUIDv7.
                 */
                id: string;
                /** @description What is wanted of it. */
                intent: components["schemas"]["Intent"];
                /** @description Task or service. */
                kind: components["schemas"]["JobKind"];
                /** @description For people and filters. */
                labels: {
                    [key: string]: string;
                };
                /**
                 * Format: int32
                 * @description How many they may cost.
                 */
                max_retries: number;
                /** @description Why it ended, in plain words; at most 200 characters, empty when there is nothing to say. */
                message: string;
                /** @description For people; need not be unique. */
                name: string;
                /**
                 * Format: uuid
                 * @description The node of the newest attempt.
                 */
                node_id?: string | null;
                /** @description That node's name; absent when it is not known any more. */
                node_name?: string | null;
                outcome?: components["schemas"]["Outcome"] | null;
                /** @description The team that is accounted for. */
                owner_id: string;
                /** @description The pool it waits in. */
                pool: string;
                /**
                 * Format: int32
                 * @description 0–100, more is more urgent.
                 */
                priority: number;
                /** @description Beside the status, as in a job. */
                reason: string;
                /**
                 * Format: int32
                 * @description Retries that its own failures cost in this round.
                 */
                retry_count: number;
                /**
                 * Format: int32
                 * @description From 1; one more with each retry by hand.
                 */
                round: number;
                /**
                 * Format: int32
                 * @description The signal its task process died of.
                 */
                signal?: number | null;
                started_time?: components["schemas"]["Time"] | null;
                /** @description Where it is. */
                status: components["schemas"]["Status"];
                /** @description Who submitted it. */
                submitted_by: string;
                waiting_since_time?: components["schemas"]["Time"] | null;
            }[];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
        };
        /** @description A page. It may be short, even empty, and still have a next one: what one page scans is bounded. */
        Page_LogPiece: {
            /** @description In the order of the list. */
            items: {
                /**
                 * Format: int64
                 * @description Offset in the stream of the first byte.
                 */
                from: number;
                /**
                 * Format: int64
                 * @description The order of arrival within the attempt, over both streams; any of them is a cursor.
                 */
                number: number;
                /** @description `stdout` or `stderr`. */
                stream: string;
                /** @description When the first byte was read, by the node's clock. */
                time: components["schemas"]["Time"];
                /**
                 * Format: int64
                 * @description Offset in the stream after the last byte.
                 */
                to: number;
            }[];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
        };
        /** @description A page. It may be short, even empty, and still have a next one: what one page scans is bounded. */
        Page_LogSizes: {
            /** @description In the order of the list. */
            items: {
                /**
                 * Format: int32
                 * @description Which attempt.
                 */
                attempt: number;
                /** @description Nothing more comes. */
                over: boolean;
                /**
                 * Format: int64
                 * @description Bytes of standard error.
                 */
                stderr: number;
                /**
                 * Format: int64
                 * @description Bytes of standard output.
                 */
                stdout: number;
            }[];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
        };
        /** @description A page. It may be short, even empty, and still have a next one: what one page scans is bounded. */
        Page_Node: {
            /** @description In the order of the list. */
            items: {
                /**
                 * Format: int32
                 * @description How many attempts it has.
                 */
                attempts: number;
                /** @description Whether it was heard of lately, is open, and is neither suspended nor quarantined. */
                available: boolean;
                /** @description What it offers. */
                capacity: components["schemas"]["NodeResources"];
                /** @description `cgroup`, `pidns` or `subreaper`: what keeps a task's processes together there. */
                containment: string;
                /** @description What operators let onto it. */
                gate: components["schemas"]["NodeGate"];
                /** @description Its last heartbeat. */
                heard_time: components["schemas"]["Time"];
                /**
                 * Format: uuid
                 * @description Which.
                 */
                id: string;
                /** @description What it is labelled with. */
                labels: {
                    [key: string]: string;
                };
                /**
                 * Format: int32
                 * @description The most it takes at a time.
                 */
                max_attempts: number;
                /** @description The host name. */
                name: string;
                /** @description The pool it serves. */
                pool: string;
                /** @description Why it gets no attempts until an operator has looked at it. */
                quarantined?: string | null;
                /** @description What its attempts reserve. */
                reserved: components["schemas"]["NodeResources"];
                /** @description How it can isolate. */
                runtimes: components["schemas"]["Runtime"][];
                /** @description Why it gets no attempts until its worker has proven itself. */
                suspended?: string | null;
                /** @description Its worker's version. */
                version: string;
            }[];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
        };
        /** @description A page. It may be short, even empty, and still have a next one: what one page scans is bounded. */
        Page_NodeAttempt: {
            /** @description In the order of the list. */
            items: {
                /** @description Never two at a time. */
                exclusive: boolean;
                /** @description What is wanted of it. */
                intent: components["schemas"]["Intent"];
                /**
                 * Format: uuid
                 * @description Whose attempt it is.
                 */
                job_id: string;
                /** @description The job's name. */
                job_name: string;
                /** @description Whether it is meant to end. */
                kind: components["schemas"]["JobKind"];
                /** @description When its lease runs out unless it is renewed. */
                lease_until: components["schemas"]["Time"];
                /**
                 * Format: int32
                 * @description The attempt's number.
                 */
                number: number;
                /** @description The team that is accounted for. */
                owner_id: string;
                /** @description Where it is. */
                phase: components["schemas"]["Phase"];
                /** @description When it was claimed. */
                placed_time: components["schemas"]["Time"];
                /**
                 * Format: int32
                 * @description 0–100, more is more urgent.
                 */
                priority: number;
                /** @description What it reserves. */
                resources: components["schemas"]["NodeResources"];
                started_time?: components["schemas"]["Time"] | null;
            }[];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
        };
        /** @description A page. It may be short, even empty, and still have a next one: what one page scans is bounded. */
        Page_Pool: {
            /** @description In the order of the list. */
            items: {
                /** @description When it was made. */
                created_time: components["schemas"]["Time"];
                /** @description Its name. */
                name: string;
            }[];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
        };
        /** @description A page. It may be short, even empty, and still have a next one: what one page scans is bounded. */
        Page_Token: {
            /** @description In the order of the list. */
            items: {
                /** @description When it was made. */
                created_time: components["schemas"]["Time"];
                expires_time?: components["schemas"]["Time"] | null;
                /**
                 * Format: uuid
                 * @description Which; not the secret.
                 */
                id: string;
                /** @description The principal's name. */
                name: string;
                /** @description The owners it acts for; the first is the default. */
                owners: string[];
                revoked_time?: components["schemas"]["Time"] | null;
                /** @description What it may do. */
                role: components["schemas"]["Role"];
            }[];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
        };
        /** @description A page. It may be short, even empty, and still have a next one: what one page scans is bounded. */
        Page_View: {
            /** @description In the order of the list. */
            items: {
                /** @description When it was changed last. */
                changed_time: components["schemas"]["Time"];
                /** @description The principal that made it, and may change it. */
                created_by: string;
                /** @description When. */
                created_time: components["schemas"]["Time"];
                /** @description A query string with the conditions of `GET /api/v1/jobs`. */
                filter: string;
                /** @description Which. */
                id: string;
                /** @description For people. */
                name: string;
                /** @description Whether everybody sees it. */
                shared: boolean;
            }[];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
        };
        /** @description A page. It may be short, even empty, and still have a next one: what one page scans is bounded. */
        Page_WaitingJob: {
            /** @description In the order of the list. */
            items: {
                /**
                 * Format: uuid
                 * @description Which.
                 */
                id: string;
                /** @description Its name. */
                name: string;
                /** @description Its owner. */
                owner_id: string;
                /** @description The pool it waits in. */
                pool: string;
                /** @description Why, as in `GET /api/v1/jobs/{id}/why`. */
                reason: string;
                /** @description What would change it; empty when there is nothing to do. */
                remedy: string;
                /** @description The same in plain words. */
                summary: string;
                /** @description Since when. */
                waiting_since_time: components["schemas"]["Time"];
            }[];
            /** @description Give this as `cursor` for the next page; absent on the last one. */
            next_cursor?: string | null;
        };
        /** @enum {string} */
        Phase: "placed" | "starting" | "running" | "finishing";
        /** @description A pool. */
        Pool: {
            /** @description When it was made. */
            created_time: components["schemas"]["Time"];
            /** @description Its name. */
            name: string;
        };
        /** @description What a pool offers. */
        PoolSummary: {
            /** @description What heard nodes offer. */
            capacity: components["schemas"]["NodeResources"];
            /** @description Its name. */
            name: string;
            /**
             * Format: int32
             * @description All its nodes.
             */
            nodes: number;
            /**
             * Format: int32
             * @description Nodes heard of lately.
             */
            nodes_heard: number;
            /** @description What attempts reserve. */
            reserved: components["schemas"]["NodeResources"];
        };
        /** @description What went wrong (RFC 9457). */
        Problem: {
            /**
             * @description Stable; for programs to branch on. The list stands in docs/errors.md.
             * @example invalid_request
             */
            code: string;
            /** @description What happened and what to do, for people. */
            detail: string;
            /** @description Every fault found in bad input. */
            errors?: components["schemas"]["ProblemError"][];
            /**
             * Format: int32
             * @description The HTTP status.
             */
            status: number;
            /** @description The status in words. */
            title: string;
            /** @description `about:blank`: the status says the kind, `code` says which. */
            type: string;
        };
        /** @description One fault of bad input. */
        ProblemError: {
            /**
             * @description Stable; which kind of fault.
             * @example out_of_range
             */
            code: string;
            /** @description What is wrong and what is expected. */
            detail: string;
            /**
             * @description Where: a JSON pointer into the body, `?name` for a query parameter, or a header's name.
             * @example /resources/cpu
             */
            pointer: string;
        };
        /** @description What a job asks for. */
        ResourcesSubmit: {
            cpu?: components["schemas"]["Cores"] | null;
            cpu_limit?: components["schemas"]["Cores"] | null;
            memory?: components["schemas"]["Bytes"] | null;
        };
        /** @description A retry by hand. */
        RetryRequest: {
            /**
             * Format: int32
             * @description The newest attempt that was seen. When there is a newer one, nothing is done.
             */
            after_attempt?: number | null;
        };
        /** @enum {string} */
        Role: "node" | "viewer" | "submitter" | "operator" | "admin";
        /** @enum {string} */
        Runtime: "process";
        /** @description A duration: a number of seconds, or on the way in a text with units. */
        Seconds: number | string;
        /** @description How a service's task process left, before it was started again. */
        ServiceExit: {
            /** @description `memory` when it was its memory limit, else `itself`. */
            ended_by: components["schemas"]["EndedBy"];
            /**
             * Format: int32
             * @description The code it left with.
             */
            exit_code?: number | null;
            /**
             * Format: int32
             * @description The signal it died of.
             */
            signal?: number | null;
            /** @description When, by the node's clock. */
            time: components["schemas"]["Time"];
        };
        /** @description A session that has begun; the cookie comes in a header. */
        Session: {
            /** @description When it ends. */
            expires_time: components["schemas"]["Time"];
            /** @description Who is in session. */
            me: components["schemas"]["Me"];
        };
        /** @description What begins a session: one of the two. */
        SessionCreate: {
            /** @description A login code; it is used up. */
            login?: string | null;
            /** @description A token's secret. */
            token?: string | null;
        };
        /** @enum {string} */
        Status: "ready" | "waiting" | "running" | "retry" | "success" | "final_failed" | "cancelled";
        /** @description How many jobs have a status. */
        StatusCount: {
            /** @description There are more than `count`. */
            capped: boolean;
            /**
             * Format: int64
             * @description Counting stops at a bound.
             */
            count: number;
            /** @description The status. */
            status: components["schemas"]["Status"];
        };
        /** @description The data of the first server-sent event, of the type `start`: where the stream begins. */
        StreamStart: {
            /** @description Events after this one follow. */
            cursor: string;
        };
        /** @description Bounded counts of jobs, and what the fleet offers. */
        Summary: {
            /** @description What heard nodes offer. */
            capacity: components["schemas"]["NodeResources"];
            /** @description What everything is kept in: `postgres` or `sqlite`. */
            datastore: string;
            /** @description How the roles fare. */
            health?: components["schemas"]["Health"];
            /** @description One for each status; ended ones within the last 24 hours. */
            jobs: components["schemas"]["StatusCount"][];
            /**
             * Format: int32
             * @description All nodes.
             */
            nodes: number;
            /**
             * Format: int32
             * @description Nodes heard of lately.
             */
            nodes_heard: number;
            /** @description The datastore's clock. */
            now: components["schemas"]["Time"];
            oldest_waiting_time?: components["schemas"]["Time"] | null;
            /** @description The same of each pool that has nodes, by name. */
            pools?: components["schemas"]["PoolSummary"][];
            /** @description What attempts reserve. */
            reserved: components["schemas"]["NodeResources"];
            /** @description The version of the server that answers. */
            version: string;
        };
        /** Format: date-time */
        Time: string;
        /** @description A token, without its secret. */
        Token: {
            /** @description When it was made. */
            created_time: components["schemas"]["Time"];
            expires_time?: components["schemas"]["Time"] | null;
            /**
             * Format: uuid
             * @description Which; not the secret.
             */
            id: string;
            /** @description The principal's name. */
            name: string;
            /** @description The owners it acts for; the first is the default. */
            owners: string[];
            revoked_time?: components["schemas"]["Time"] | null;
            /** @description What it may do. */
            role: components["schemas"]["Role"];
        };
        /** @description A token to be made. */
        TokenCreate: {
            expires_in?: components["schemas"]["Seconds"] | null;
            /** @description The principal's name; shown as `submitted_by` and in the audit trail. */
            name: string;
            /** @description The owners it acts for; the first is the default. */
            owners?: string[];
            /** @description What it may do. */
            role: components["schemas"]["Role"];
        };
        /** @description A new token: the only time its secret is shown. */
        TokenCreated: {
            /** @description What goes behind `Authorization: Bearer`. */
            secret: string;
            /** @description The rest of it. */
            token: components["schemas"]["Token"];
        };
        /** @description A folder in the artifact store: a manifest, and the artifacts that it names. */
        Tree: {
            /**
             * Format: int32
             * @description How many files it has.
             */
            files: number;
            /** @description SHA-256 of its manifest, 64 lower-case hex digits; its name. */
            sha256: string;
            /**
             * Format: int64
             * @description How many bytes they have together.
             */
            size_bytes: number;
        };
        /** @description What an attempt used; 0 where the node can't measure. */
        Usage: {
            /** @description Processor time in the kernel. */
            cpu_system: components["schemas"]["Seconds"];
            /** @description Processor time in user mode. */
            cpu_user: components["schemas"]["Seconds"];
            /** @description What enforced the limits: `cgroup-v1`, `cgroup-v2`, `none`. */
            limits: string;
            /**
             * Format: int64
             * @description The most memory at one time.
             */
            peak_memory_bytes: number;
            /** @description Between start and end of the task process, by a monotonic clock. */
            wall: components["schemas"]["Seconds"];
        };
        /** @description A filter that somebody gave a name. */
        View: {
            /** @description When it was changed last. */
            changed_time: components["schemas"]["Time"];
            /** @description The principal that made it, and may change it. */
            created_by: string;
            /** @description When. */
            created_time: components["schemas"]["Time"];
            /** @description A query string with the conditions of `GET /api/v1/jobs`. */
            filter: string;
            /** @description Which. */
            id: string;
            /** @description For people. */
            name: string;
            /** @description Whether everybody sees it. */
            shared: boolean;
        };
        /** @description A view to be kept. */
        ViewWrite: {
            /** @description A query string with the conditions of `GET /api/v1/jobs`; may be empty. */
            filter: string;
            /** @description For people; unique among those of one principal. */
            name: string;
            /** @description Whether everybody sees it. */
            shared?: boolean;
        };
        /** @description A job that waits for a place. */
        WaitingJob: {
            /**
             * Format: uuid
             * @description Which.
             */
            id: string;
            /** @description Its name. */
            name: string;
            /** @description Its owner. */
            owner_id: string;
            /** @description The pool it waits in. */
            pool: string;
            /** @description Why, as in `GET /api/v1/jobs/{id}/why`. */
            reason: string;
            /** @description What would change it; empty when there is nothing to do. */
            remedy: string;
            /** @description The same in plain words. */
            summary: string;
            /** @description Since when. */
            waiting_since_time: components["schemas"]["Time"];
        };
        /** @description How long jobs had waited. */
        WaitTimes: {
            /**
             * Format: int64
             * @description How many were placed.
             */
            count: number;
            /**
             * Format: int64
             * @description Half of them had waited at most so many milliseconds; up to 42 % too much. Absent when none was placed.
             */
            p50_ms?: number | null;
            /**
             * Format: int64
             * @description The same of 95 in a hundred.
             */
            p95_ms?: number | null;
        };
        /** @description Why a job isn't running yet, and what would change that. */
        Why: {
            /** @description What a job passes before it runs, in order, and where this one stands. */
            gates: components["schemas"]["WhyGate"][];
            /** @description What stands in the way on each node of its pool; empty while another gate holds it. */
            nodes: components["schemas"]["WhyNode"][];
            /** @description Stable; which of the gates holds it, or `running`, or how it ended. */
            reason: string;
            /** @description What would change it; empty when nothing has to. */
            remedy: string;
            /** @description Where it is. */
            status: components["schemas"]["Status"];
            /** @description In plain words. */
            summary: string;
        };
        /** @description One thing a job passes before it runs. */
        WhyGate: {
            /** @description In plain words. */
            detail: string;
            /** @description `artifact`, `run_at`, `backoff`, `placement`. */
            gate: string;
            /** @description Whether the job is past it. */
            open: boolean;
            opens_time?: components["schemas"]["Time"] | null;
        };
        /** @description One node, as the job sees it. */
        WhyNode: {
            /** @description It fits here now. */
            fits: boolean;
            /** @description The obstacle will not go away by itself. */
            lasting: boolean;
            /** @description The host name. */
            name: string;
            /**
             * Format: uuid
             * @description Which.
             */
            node_id: string;
            /** @description What stands in the way, in plain words; empty when it fits. */
            obstacle: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
