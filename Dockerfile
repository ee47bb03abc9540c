# syntax=docker/dockerfile:1
# The gateway in a small image without a shell, as a user without rights.
#
#     docker build --tag plimsoll .
#     docker run --rm --publish 127.0.0.1:7433:7433 --volume plimsoll:/data \
#         --volume "$PWD/gateway.toml:/etc/plimsoll/plimsoll.toml:ro" plimsoll
#
# A gateway that others can reach needs `[gateway.keys]` in its settings (docs/gateway.md); `plimsoll serve` refuses to start without.
FROM rust:1.95-slim-trixie AS build
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --profile dist --locked --bin plimsoll \
    && install -D --strip target/dist/plimsoll /out/plimsoll \
    && mkdir /out/data

FROM gcr.io/distroless/cc-debian13:nonroot
COPY --from=build /out/plimsoll /usr/local/bin/
COPY --from=build --chown=nonroot:nonroot /out/data /data
# The settings are those of the user: /etc/plimsoll/plimsoll.toml.
ENV XDG_CONFIG_HOME=/etc PLIMSOLL_STORE=/data/plimsoll.db
VOLUME /data
WORKDIR /data
EXPOSE 7433
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["plimsoll", "doctor", "--running"]
ENTRYPOINT ["plimsoll"]
CMD ["serve", "--listen", "0.0.0.0:7433"]
