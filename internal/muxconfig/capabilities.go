package muxconfig

// Names in MemberReport.Capabilities. One that is absent is something that the
// member cannot do. Of the three identities exactly one is present.
const (
	CapabilityRange            = "range"
	CapabilityPartialWrite     = "partialWrite"
	CapabilityMetadata         = "metadata"
	CapabilityConditionalWrite = "conditionalWrite"
	CapabilityNativeMultipart  = "nativeMultipart"
	CapabilityOrderedList      = "orderedList"
	CapabilityTagging          = "tagging"

	CapabilityIdentityNative = "identity=native"
	CapabilityIdentityStored = "identity=stored"
	CapabilityIdentityWeak   = "identity=weak"
)
