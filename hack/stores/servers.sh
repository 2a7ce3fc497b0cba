# Installs or builds the stores' servers that are missing, and says where they are; source it after hack/lib.sh, in ROOT.

need_packages nginx=nginx-light /usr/lib/nginx/modules/ngx_http_dav_ext_module.so=libnginx-mod-http-dav-ext \
  lighttpd=lighttpd /usr/lib/lighttpd/mod_webdav.so=lighttpd-mod-webdav \
  swift-proxy-server=swift-proxy swift-account-server=swift-account swift-container-server=swift-container \
  swift-object-server=swift-object memcached=memcached
STORAGEMUX_AZURITE=$(hack/stores/azurite.sh)
STORAGEMUX_VERSITYGW=$(hack/tool.sh versitygw)
export STORAGEMUX_AZURITE STORAGEMUX_VERSITYGW
